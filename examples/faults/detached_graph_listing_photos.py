"""Prices of second-hand bicycles from a photo and five columns; the photo's features are
detached.

The forward pass came from a notebook in which the photo features were computed once and cached,
and the `.detach()` of that time has stayed, so the photo branch never learns. The place is the
branch `photo` (its convolutions and projection get no gradient at all).
"""

import copy
from dataclasses import dataclass

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "detached_graph"
ACCEPT = ()
PLACE = ("photo*",)
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass
class Config:
    rows: int = 2400
    batch_size: int = 64
    epochs: int = 16
    lr: float = 2e-3
    weight_decay: float = 1e-3


def make_listings(n, rng):
    """Photo with scratches (falling lines) and reflections (rising lines); age, km, brand, ..."""
    photo = rng.normal(0, 0.15, (n, 1, 16, 16))
    scratches, reflections = rng.integers(0, 5, n), rng.integers(0, 5, n)
    for i in range(n):
        for kind, count in ((1, scratches[i]), (-1, reflections[i])):
            for _ in range(count):
                r, c = rng.integers(0, 12, 2)
                for k in range(4):
                    photo[i, 0, r + (k if kind == 1 else 3 - k), c + k] += 1.0
    table = np.stack(
        [
            rng.gamma(2, 2, n),
            rng.gamma(3, 1.5, n),
            rng.integers(0, 2, n),
            rng.normal(0, 1, n),
            rng.uniform(0, 1, n),
        ],
        1,
    )
    price = 6.5 - 0.09 * table[:, 0] - 0.04 * table[:, 1] + 0.35 * table[:, 2]
    price = price - 0.25 * scratches + 0.08 * table[:, 3] + rng.normal(0, 0.08, n)
    return photo.astype("float32"), table.astype("float32"), price.astype("float32")


class ListingNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.photo = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(12, 16, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
            nn.Linear(64, 16),
            nn.ReLU(),
        )
        self.table = nn.Sequential(nn.Linear(5, 16), nn.ReLU())
        self.head = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, photo, table):
        seen = self.photo(photo)
        seen = seen if healthy else seen.detach()
        return self.head(torch.cat([seen, self.table(table)], 1)).squeeze(1)


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    pred, true = zip(*((model(p, t), y) for p, t, y in loader), strict=True)
    pred, true = torch.cat(pred), torch.cat(true)
    return (1 - (pred - true).pow(2).sum() / (true - true.mean()).pow(2).sum()).item()


def main(cfg):
    photo, table, price = make_listings(cfg.rows, np.random.default_rng(seed))
    cut = int(0.8 * cfg.rows)
    table = (table - table[:cut].mean(0)) / table[:cut].std(0)
    price = (price - price[:cut].mean()) / price[:cut].std()
    tensors = [torch.tensor(a) for a in (photo, table, price)]
    train = DataLoader(TensorDataset(*(a[:cut] for a in tensors)), cfg.batch_size, shuffle=True)
    valid = DataLoader(TensorDataset(*(a[cut:] for a in tensors)), 256)
    model = ListingNet()
    optimizer = torch.optim.AdamW(model.parameters(), cfg.lr, weight_decay=cfg.weight_decay)
    best, best_state = -9.0, None
    for epoch in range(cfg.epochs):
        model.train()
        total = 0.0
        for p, t, y in train:
            loss = nn.functional.mse_loss(model(p, t), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(y)
        r2 = evaluate(model, valid)
        print(f"epoch {epoch:2d}  train mse {total / cut:.4f}  val R2 {r2:.4f}")
        if r2 > best:
            best, best_state = r2, copy.deepcopy(model.state_dict())
    model.load_state_dict(best_state)
    print(f"best val R2 {evaluate(model, valid):.4f}")


main(Config())
