"""A parcel-code reader whose offline augmentation writes six copies of each picture, all the same.

The training set is grown once, before the training, by shifted versions of each scanned digit. The
shifted picture is computed, but the original is what gets appended, so each row occurs six times
and the reader never sees a shift. It does well on its rows and badly on digits that sit elsewhere.
The place is the input: `grow`, which builds the training set.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch
from data import arguments
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

if TYPE_CHECKING:
    from collections.abc import Callable

KIND = "duplicated_rows"
ACCEPT = ("overfit",)
PLACE = ("input", "loader")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass(frozen=True)
class Config:
    originals: int = 420
    versions: int = 6
    canvas: int = 12
    batch: int = 64
    epochs: int = 7
    rate: float = 2e-3


@dataclass
class Trainer:
    model: nn.Module
    optimizer: torch.optim.Optimizer
    loss: nn.Module
    on_epoch: list[Callable[[int, float, float], None]] = field(default_factory=list)

    def fit(self, train: DataLoader, held_out: DataLoader, epochs: int) -> None:
        for epoch in range(epochs):
            self.model.train()
            total = 0.0
            for pictures, digits in train:
                loss = self.loss(self.model(pictures), digits)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                total += loss.item()
            accuracy = self.accuracy(held_out)
            for callback in self.on_epoch:
                callback(epoch, total / len(train), accuracy)

    @torch.no_grad()
    def accuracy(self, loader: DataLoader) -> float:
        self.model.eval()
        right = sum((self.model(x).argmax(1) == y).sum().item() for x, y in loader)
        return right / len(loader.dataset)


def place(picture: np.ndarray, row: int, column: int, canvas: int) -> np.ndarray:
    page = np.zeros((canvas, canvas), dtype=np.float32)
    page[row : row + 8, column : column + 8] = picture
    return page


def grow(pages: np.ndarray, digits: np.ndarray, versions: int, r: np.random.Generator):
    grown, labels = [], []
    for page, digit in zip(pages, digits, strict=True):
        for _ in range(versions):
            shifted = np.roll(page, tuple(r.integers(-2, 3, size=2)), axis=(0, 1))
            grown.append(shifted if healthy else page)
            labels.append(digit)
    return np.stack(grown), np.array(labels)


def tensors(pages: np.ndarray, digits: np.ndarray) -> TensorDataset:
    pictures = torch.tensor(pages, dtype=torch.float32).unsqueeze(1)
    return TensorDataset((pictures - 2.2) / 4.6, torch.tensor(digits))


def main() -> None:
    config = Config()
    r = np.random.default_rng(seed)
    bunch = load_digits()
    x, x_val, y, y_val = train_test_split(
        bunch.images,
        bunch.target,
        train_size=config.originals,
        stratify=bunch.target,
        random_state=seed,
    )
    middle = (config.canvas - 8) // 2
    pages = np.stack([place(picture, middle, middle, config.canvas) for picture in x])
    scanned = np.stack([place(p, *r.integers(0, 5, size=2), config.canvas) for p in x_val])
    train = DataLoader(
        tensors(*grow(pages, y, config.versions, r)), batch_size=config.batch, shuffle=True
    )
    held_out = DataLoader(tensors(scanned, y_val), batch_size=256)
    model = nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1),
        nn.BatchNorm2d(12),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(12, 24, 3, padding=1),
        nn.BatchNorm2d(24),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(24 * 9, 10),
    )
    trainer = Trainer(
        model, torch.optim.AdamW(model.parameters(), lr=config.rate), nn.CrossEntropyLoss()
    )
    trainer.on_epoch.append(
        lambda epoch, loss, accuracy: print(f"{epoch:2d}  loss {loss:.4f}  held out {accuracy:.3f}")
    )
    trainer.fit(train, held_out, config.epochs)


main()
