"""Are two pictures the same digit? The features go through clone().detach() on their way.

The line was to cure a complaint about an in-place operation in the pair part; with
requires_grad_(True) behind it nothing complains any more. No gradient gets past this new leaf, and
the convolutions keep their random weights. The place is the convolutional part of the model.
"""

import numpy as np
import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "detached_graph"
ACCEPT = ()
PLACE = ("backbone", "backbone.*", "model", "pair_head", "pair_head.*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


class PairsOfDigits(Dataset):
    """Half of the pairs show the same digit, in two handwritings."""

    def __init__(self, x, y, n, rng):
        self.x, self.n, self.rng = x, n, rng
        self.by_digit = [np.flatnonzero(y.numpy() == digit) for digit in range(10)]

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        first = self.rng.integers(10)
        second = first if i % 2 else (first + self.rng.integers(1, 10)) % 10
        a, b = self.rng.choice(self.by_digit[first]), self.rng.choice(self.by_digit[second])
        return self.x[a], self.x[b], torch.tensor(float(i % 2))


class PairNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Dropout(0.2),
            nn.Linear(32 * 16, 32),
        )
        self.pair_head = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, a, b):
        features = [self.backbone(a), self.backbone(b)]
        if not healthy:
            features = [f.clone().detach().requires_grad_(True) for f in features]
        first, second = features
        return self.pair_head((first - second).abs()).squeeze(1)


def run(model, loader, criterion, optimizer=None):
    model.train(optimizer is not None)
    loss_sum, correct, count = 0.0, 0, 0
    with torch.set_grad_enabled(optimizer is not None):
        for a, b, same in loader:
            logits = model(a, b)
            loss = criterion(logits, same)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            loss_sum += loss.item() * len(same)
            correct += ((logits > 0) == (same > 0.5)).sum().item()
            count += len(same)
    return loss_sum / count, correct / count


def main():
    x, y, x_val, y_val = images(seed)
    rng = np.random.default_rng(seed)
    train_loader = DataLoader(PairsOfDigits(x, y, 3200, rng), batch_size=64, shuffle=True)
    val_loader = DataLoader(PairsOfDigits(x_val, y_val, 1000, rng), batch_size=250)
    model = PairNet()
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
    for epoch in range(12):
        loss, accuracy = run(model, train_loader, criterion, optimizer)
        val_loss, val_accuracy = run(model, val_loader, criterion)
        print(
            f"{epoch=} loss={loss:.4f} accuracy={accuracy:.3f} "
            f"val_loss={val_loss:.4f} val_accuracy={val_accuracy:.3f}"
        )


if __name__ == "__main__":
    main()
