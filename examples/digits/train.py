"""Train a small convolutional network on scikit-learn's handwritten digits.

The 1,797 images of 8 x 8 grey values come with scikit-learn, so nothing is downloaded; a healthy
run takes a few seconds on one core and ends above 97 % accuracy on images it has not seen.

`--fault` puts one real mistake into this script, each at the place where people make it.
"""

from __future__ import annotations

import argparse
import textwrap

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FAULTS = {
    "learning_rate": "a learning rate of 2 instead of 0.02: a slip in a config file",
    "sigmoid_stack": "six sigmoid layers, weights by nn.init.uniform_, which means 0 to 1",
    "dead_relu": "every bias starts at -4.6, a value meant for the last layer of a detector",
    "one_class": "a quick-run subset takes the first images, but the images are sorted by label",
    "no_zero_grad": "optimizer.zero_grad() is missing, so the gradients of all steps add up",
    "shuffled_labels": "images and labels are shuffled, each in an order of its own",
}


def load_data(fault: str | None, seed: int) -> tuple[TensorDataset, TensorDataset]:
    """Images as (n, 1, 8, 8) standardised floats and labels as (n,) integers, split in two."""
    digits = load_digits()
    images = digits.images.astype(np.float32)[:, None]
    labels = digits.target.astype(np.int64)
    x_train, x_val, y_train, y_val = train_test_split(
        images, labels, train_size=0.75, stratify=labels, random_state=seed
    )
    mean, std = x_train.mean(), x_train.std()
    x_train, x_val = (x_train - mean) / std, (x_val - mean) / std
    if fault == "one_class":
        # As image folders do: all of class 0 first, then all of class 1, and so on.
        order = np.argsort(y_train, kind="stable")
        x_train, y_train = x_train[order][:128], y_train[order][:128]
    if fault == "shuffled_labels":
        y_train = np.random.default_rng(seed).permutation(y_train)
    return (
        TensorDataset(torch.from_numpy(x_train), torch.from_numpy(y_train)),
        TensorDataset(torch.from_numpy(x_val), torch.from_numpy(y_val)),
    )


class DigitsCNN(nn.Module):
    """Two convolutions, one hidden layer: (n, 1, 8, 8) images to (n, 10) logits."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, kernel_size=3, padding=1)
        self.relu1 = nn.ReLU()
        self.conv2 = nn.Conv2d(16, 32, kernel_size=3, padding=1)
        self.relu2 = nn.ReLU()
        self.pool = nn.MaxPool2d(2)
        self.fc1 = nn.Linear(32 * 4 * 4, 64)
        self.relu3 = nn.ReLU()
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.relu1(self.conv1(x))
        x = self.pool(self.relu2(self.conv2(x)))
        x = self.relu3(self.fc1(x.flatten(1)))
        return self.fc2(x)


class SigmoidStack(nn.Sequential):
    """Six hidden layers with a sigmoid after each: (n, 1, 8, 8) images to (n, 10) logits."""

    def __init__(self, width: int = 64, depth: int = 6) -> None:
        layers: list[nn.Module] = [nn.Flatten()]
        for _ in range(depth):
            layers += [nn.Linear(width, width), nn.Sigmoid()]
        super().__init__(*layers, nn.Linear(width, 10))
        for layer in self:
            if isinstance(layer, nn.Linear):
                nn.init.uniform_(layer.weight)


def build_model(fault: str | None) -> nn.Module:
    if fault == "sigmoid_stack":
        return SigmoidStack()
    model = DigitsCNN()
    if fault == "dead_relu":
        # -log((1 - p) / p) for p = 0.01 belongs into the last layer of a detector, and only there.
        for layer in model.modules():
            if isinstance(layer, nn.Conv2d | nn.Linear):
                nn.init.constant_(layer.bias, -4.6)
    return model


def train_epoch(
    model: nn.Module,
    loader: DataLoader,
    criterion: nn.Module,
    optimizer: torch.optim.Optimizer,
    fault: str | None,
) -> float:
    """One pass over the training set; the mean loss."""
    model.train()
    total = 0.0
    for images, labels in loader:
        if fault != "no_zero_grad":
            optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(labels)
    return total / len(loader.dataset)


@torch.no_grad()
def evaluate(model: nn.Module, loader: DataLoader, criterion: nn.Module) -> tuple[float, float]:
    """Mean loss and accuracy (0..1) on images that were not trained on."""
    model.eval()
    total = 0.0
    hits = 0
    for images, labels in loader:
        logits = model(images)
        total += criterion(logits, labels).item() * len(labels)
        hits += int((logits.argmax(1) == labels).sum())
    return total / len(loader.dataset), hits / len(loader.dataset)


def parse_arguments() -> argparse.Namespace:
    faults = "\n".join(
        textwrap.fill(f"{name:17}{text}", 78, initial_indent="  ", subsequent_indent=" " * 19)
        for name, text in FAULTS.items()
    )
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n", 1)[0],
        epilog=f"faults:\n{faults}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--epochs", type=int, default=15, help="passes over the data (default 15)")
    parser.add_argument("--batch-size", type=int, default=32, help="images per step (default 32)")
    parser.add_argument("--seed", type=int, default=0, help="of split, weights and order")
    parser.add_argument("--workers", type=int, default=0, help="processes that load data")
    parser.add_argument("--fault", choices=FAULTS, help="make one mistake, see below")
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    fault: str | None = arguments.fault
    torch.manual_seed(arguments.seed)
    torch.set_num_threads(1)  # the model is too small to gain from more

    train_data, val_data = load_data(fault, arguments.seed)
    train_loader = DataLoader(
        train_data, arguments.batch_size, shuffle=True, num_workers=arguments.workers
    )
    val_loader = DataLoader(val_data, batch_size=256, num_workers=arguments.workers)

    model = build_model(fault)
    criterion = nn.CrossEntropyLoss()
    learning_rate = 2.0 if fault == "learning_rate" else 0.02
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate, momentum=0.9)

    for epoch in range(1, arguments.epochs + 1):
        train_loss = train_epoch(model, train_loader, criterion, optimizer, fault)
        val_loss, accuracy = evaluate(model, val_loader, criterion)
        print(
            f"epoch {epoch:2}  train loss {train_loss:7.4f}"
            f"  val loss {val_loss:7.4f}  val accuracy {accuracy:6.1%}"
        )


if __name__ == "__main__":
    main()
