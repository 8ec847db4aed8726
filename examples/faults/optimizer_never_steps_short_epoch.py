"""A 1-d convolution classifies heart beats; with gradient accumulation over 16 batches in epochs
of 12, no step is ever taken.

The loop came from a larger data set. The batch number starts again in each epoch, so `(i + 1) %
accumulate == 0` never becomes true and neither optimizer.step() nor zero_grad() is reached. The
place is the loop.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "optimizer_never_steps"
ACCEPT = ("gradients_not_cleared",)
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)


@dataclass
class Config:
    epochs: int = 15
    batch_size: int = 80
    accumulate: int = 4 if healthy else 16
    lr: float = 3e-3
    weight_decay: float = 1e-4
    classes: int = 4
    length: int = 96


def beat(rng, kind, length):
    t = np.linspace(0, 1, length)
    shift = rng.normal(0, 0.03)
    qrs_width = {0: 0.018, 1: 0.05, 2: 0.018, 3: 0.03}[kind] * rng.uniform(0.8, 1.25)
    p_amp = {0: 0.18, 1: 0.05, 2: 0.0, 3: 0.18}[kind] * rng.uniform(0.6, 1.4)
    t_amp = {0: 0.3, 1: -0.25, 2: 0.3, 3: 0.1}[kind] * rng.uniform(0.6, 1.4)
    g = lambda c, w, a: a * np.exp(-0.5 * ((t - c - shift) / w) ** 2)  # noqa: E731
    x = g(0.25, 0.03, p_amp) + g(0.45, qrs_width, rng.uniform(0.8, 1.2)) + g(0.72, 0.06, t_amp)
    x += 0.15 * np.sin(2 * np.pi * rng.uniform(0.2, 0.6) * t + rng.uniform(0, 6))
    return x + rng.normal(0, 0.09, length)


def make(n, cfg, rng):
    y = rng.integers(0, cfg.classes, n)
    x = np.stack([beat(rng, k, cfg.length) for k in y])
    x = (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True)
    return TensorDataset(torch.tensor(x, dtype=torch.float32).unsqueeze(1), torch.tensor(y))


class BeatNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        layers, c = [], 1
        for width in (16, 32, 48):
            layers += [
                nn.Conv1d(c, width, 7, padding=3),
                nn.BatchNorm1d(width),
                nn.ReLU(),
                nn.MaxPool1d(2),
            ]
            c = width
        self.features = nn.Sequential(*layers)
        self.head = nn.Linear(c, classes)

    def forward(self, x):
        return self.head(self.features(x).mean(-1))


class Trainer:
    def __init__(self, cfg):
        rng = np.random.default_rng(seed)
        self.cfg = cfg
        self.train_loader = DataLoader(
            make(960, cfg, rng), cfg.batch_size, shuffle=True, drop_last=True
        )
        self.val_loader = DataLoader(make(400, cfg, rng), 200)
        self.model = BeatNet(cfg.classes)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=cfg.lr, weight_decay=cfg.weight_decay
        )
        self.loss_fn = nn.CrossEntropyLoss()

    def train_epoch(self):
        self.model.train()
        total = 0.0
        for i, (x, y) in enumerate(self.train_loader):
            loss = self.loss_fn(self.model(x), y)
            (loss / self.cfg.accumulate).backward()
            total += loss.item()
            if (i + 1) % self.cfg.accumulate == 0:
                nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
                self.optimizer.step()
                self.optimizer.zero_grad()
        return total / len(self.train_loader)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        hits = sum((self.model(x).argmax(1) == y).sum().item() for x, y in self.val_loader)
        return hits / len(self.val_loader.dataset)

    def fit(self):
        for epoch in range(self.cfg.epochs):
            loss = self.train_epoch()
            acc = self.validate()
            if epoch % 3 == 2:
                print(
                    f"epoch {epoch + 1:3d}  train {loss:.4f}  (chance {math.log(self.cfg.classes):.3f})  val acc {acc:.3f}"  # noqa: E501
                )


Trainer(Config()).fit()
