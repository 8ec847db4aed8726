"""The checkpoint of a classifier of bird-egg shapes watches validation accuracy in mode "min", so
it keeps the worst epoch and the end restores it.

"min" is right for a loss. Accuracy is lowest in the first epoch, no later epoch is ever smaller,
and the test is made with weights of which nobody wanted to hear. The training itself is fine. The
place is the checkpoint in the loop.
"""

import copy

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "best_weights_not_kept"
ACCEPT = ()
PLACE = ("loop", "model")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

SHAPES = ("round", "oval", "pear", "cone", "long")


class ModelCheckpoint:
    """Keeps a copy of the weights of the epoch at which the watched number was best."""

    def __init__(self, model, mode):
        self.model, self.mode = model, mode
        self.best = float("inf") if mode == "min" else -float("inf")
        self.weights = None

    def update(self, value):
        better = value < self.best if self.mode == "min" else value > self.best
        if better:
            self.best = value
            self.weights = copy.deepcopy(self.model.state_dict())

    def restore(self):
        self.model.load_state_dict(self.weights)
        return self.best


def outlines(n, rng):
    """The radius of an egg in 36 directions, turned a little and measured with noise."""
    kind = rng.integers(0, len(SHAPES), n)
    stretch = np.array([0.04, 0.16, 0.16, 0.06, 0.34])[kind] + rng.normal(0, 0.025, n)
    tip = np.array([0.0, 0.02, 0.15, 0.16, 0.04])[kind] + rng.normal(0, 0.025, n)
    angle = np.linspace(0, 2 * np.pi, 36, endpoint=False) + rng.normal(0, 0.2, (n, 1))
    radius = 1 + stretch[:, None] * np.cos(2 * angle) + tip[:, None] * np.cos(3 * angle)
    return radius * rng.uniform(0.8, 1.2, (n, 1)) + rng.normal(0, 0.04, (n, 36)), kind


def accuracy(model, loader):
    model.eval()
    with torch.no_grad():
        right = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    return right / len(loader.dataset)


def main():
    x, y = outlines(2400, np.random.default_rng(seed))
    x = torch.tensor((x - x[:1500].mean(0)) / x[:1500].std(0), dtype=torch.float32)
    data = TensorDataset(x, torch.tensor(y))
    train_loader = DataLoader(
        torch.utils.data.Subset(data, range(1500)), batch_size=50, shuffle=True
    )
    val_loader = DataLoader(torch.utils.data.Subset(data, range(1500, 1950)), batch_size=450)
    test_loader = DataLoader(torch.utils.data.Subset(data, range(1950, 2400)), batch_size=450)

    model = nn.Sequential(
        nn.Linear(36, 40), nn.ELU(), nn.Dropout(0.1), nn.Linear(40, 20), nn.ELU(), nn.Linear(20, 5)
    )
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9, nesterov=True)
    checkpoint = ModelCheckpoint(model, mode="max" if healthy else "min")
    for epoch in range(1, 16):
        model.train()
        running = 0.0
        for inputs, labels in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(inputs), labels)
            loss.backward()
            optimizer.step()
            running += loss.item()
        val_accuracy = accuracy(model, val_loader)
        checkpoint.update(val_accuracy)
        print(f"epoch {epoch:2d} loss {running / 30:.3f} val accuracy {val_accuracy:.3f}")
    last = accuracy(model, test_loader)
    kept = checkpoint.restore()
    print(
        f"kept weights: val accuracy {kept:.3f}, test accuracy "
        f"{accuracy(model, test_loader):.3f} (after the last epoch it was {last:.3f})"
    )


main()
