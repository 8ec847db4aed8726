"""Sorting of scanned postage stamps: a range test blows the loss up before the training.

For 90 steps the rate is raised from 0.0001 to 30 on a state that is thrown away; the loss
goes to seven times its start. Then the weights are put back and the training proper runs at a tenth
of the rate at which the loss was lowest.
"""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING

import torch
from data import arguments
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

if TYPE_CHECKING:
    from collections.abc import Iterator

ODD = (
    "the loss falls and blows up in the first 90 steps, then starts anew: a range test, after "
    "which weights and optimizer are restored from copies"
)
_, seed = arguments(__doc__)


class StampNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.head = nn.Sequential(nn.Flatten(), nn.Dropout(0.2), nn.Linear(96, 10))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.features(x))


def endless(loader: DataLoader) -> Iterator[list[Tensor]]:
    while True:
        yield from loader


def train_step(model: nn.Module, optimizer: torch.optim.Optimizer, batch: list[Tensor]) -> float:
    model.train()
    loss = nn.functional.cross_entropy(model(batch[0]), batch[1])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def range_test(
    model: nn.Module, optimizer: torch.optim.Optimizer, batches: Iterator[list[Tensor]]
) -> float:
    low, high, steps = 1e-4, 30.0, 90
    kept = copy.deepcopy(model.state_dict()), copy.deepcopy(optimizer.state_dict())
    smooth, best, best_rate, largest = 0.0, math.inf, low, 0.0
    for step in range(steps):
        rate = low * (high / low) ** (step / (steps - 1))
        for group in optimizer.param_groups:
            group["lr"] = rate
        loss = train_step(model, optimizer, next(batches))
        largest = max(largest, loss)
        smooth = 0.8 * smooth + 0.2 * loss
        corrected = smooth / (1 - 0.8 ** (step + 1))
        if corrected < best:
            best, best_rate = corrected, rate
        if step % 15 == 14:
            print(f"range test  rate {rate:.4f}  loss {corrected:.4g}  largest {largest:.4g}")
    model.load_state_dict(kept[0])
    optimizer.load_state_dict(kept[1])
    return best_rate / 10


def main() -> None:
    bunch = load_digits()
    x = torch.tensor(bunch.images, dtype=torch.float32).unsqueeze(1)
    x, x_val, y, y_val = train_test_split(
        x, torch.tensor(bunch.target), test_size=0.25, stratify=bunch.target, random_state=seed
    )
    mean, std = x.mean(), x.std()
    x, x_val = (x - mean) / std, (x_val - mean) / std
    batches = endless(DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True))
    model = StampNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)
    rate = range_test(model, optimizer, batches)
    print(f"chosen rate {rate:.4f}")
    for group in optimizer.param_groups:
        group["lr"] = group["initial_lr"] = rate
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 300)
    for step in range(1, 301):
        loss = train_step(model, optimizer, next(batches))
        schedule.step()
        if step % 50 == 0:
            model.eval()
            with torch.no_grad():
                right = (model(x_val).argmax(1) == y_val).float().mean()
            print(f"{step}  loss {loss:.3f}  held out {right:.3f}")


main()
