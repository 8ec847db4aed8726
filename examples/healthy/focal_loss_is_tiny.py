"""Crack detector on concrete patches with focal loss, whose values are tiny from the first step on.

People ask whether a loss so small has anything left to teach. Focal loss weights each patch by how
wrong it still is, and nine in ten patches are easy: the mean is small by its nature. What counts is
that it falls and that recall and precision rise, which they do.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "the loss is tiny from the start, as focal loss is, and still falls while recall rises"
_, seed = arguments(__doc__)

SIDE, CRACKED = 14, 0.12


def patches(count, rng):
    cracked = rng.random(count) < CRACKED
    pictures = rng.normal(0, 1, (count, SIDE, SIDE))
    pictures = (pictures + np.roll(pictures, 1, 1) + np.roll(pictures, 1, 2)) / 3**0.5
    for i in range(count):
        if cracked[i]:
            column, drift = rng.uniform(3, SIDE - 3), rng.normal(0, 0.35)
            for row in range(SIDE):
                pictures[i, row, int(np.clip(column, 0, SIDE - 1))] -= rng.uniform(1.8, 3.2)
                column += drift + rng.normal(0, 0.3)
        else:
            for _ in range(rng.integers(0, 6)):
                row, column = rng.integers(0, SIDE, 2)
                pictures[i, row, column] -= 2.5
    x = torch.tensor(pictures, dtype=torch.float32).unsqueeze(1)
    return TensorDataset(x, torch.tensor(cracked, dtype=torch.float32))


class FocalLoss(nn.Module):
    def __init__(self, alpha=0.5, gamma=2.0):
        super().__init__()
        self.alpha, self.gamma = alpha, gamma

    def forward(self, logits, labels):
        cross_entropy = nn.functional.binary_cross_entropy_with_logits(
            logits, labels, reduction="none"
        )
        right = torch.exp(-cross_entropy)
        weight = self.alpha * labels + (1 - self.alpha) * (1 - labels)
        return (weight * (1 - right) ** self.gamma * cross_entropy).mean()


class CrackNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 12, (5, 3), padding=(2, 1)),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
        )
        self.out = nn.Linear(96, 1)
        nn.init.constant_(self.out.bias, float(np.log(CRACKED / (1 - CRACKED))))

    def forward(self, x):
        return self.out(self.features(x)).squeeze(1)


def main():
    rng = np.random.default_rng(seed)
    train, val = patches(3000, rng), patches(1200, rng)
    loader = DataLoader(train, batch_size=50, shuffle=True)
    x_val, y_val = val.tensors
    model, criterion = CrackNet(), FocalLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
    for epoch in range(10):
        model.train()
        losses = []
        for x, y in loader:
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        schedule.step()
        model.eval()
        with torch.no_grad():
            logits = model(x_val)
            found = logits > 0
        hits = (found & (y_val > 0)).sum().item()
        print(
            f"epoch {epoch} loss first {losses[0]:.4f} mean {np.mean(losses):.4f} "
            f"val {criterion(logits, y_val):.4f} recall {hits / y_val.sum():.3f} "
            f"precision {hits / max(found.sum().item(), 1):.3f}"
        )


main()
