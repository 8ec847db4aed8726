"""Bearing faults from vibration windows by a 1-D CNN; eight micro-batches are summed, not
averaged.

The user's memory only holds micro-batches of 16, so the gradients of 8 of them are accumulated
before each step, but the loss isn't divided by 8: each step is 8 times what the rate was tuned
for. The place is the loop.
"""

import copy
from dataclasses import dataclass

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "accumulation_not_averaged"
ACCEPT = ()
PLACE = ("loop", "loss")
SILENT = False
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass
class Config:
    n: int = 2048
    length: int = 80
    micro_batch: int = 16
    accumulate: int = 8
    epochs: int = 16
    lr: float = 0.04
    momentum: float = 0.9


def vibration(cfg):
    """Good, inner-race, outer-race and cage faults: bursts with different periods and ringing."""
    r = np.random.default_rng(77 + seed)
    y = r.integers(0, 4, cfg.n)
    t = np.arange(cfg.length)
    x = 0.3 * r.normal(size=(cfg.n, cfg.length))
    x += 0.6 * np.sin(0.2 * t + r.uniform(0, 6.28, (cfg.n, 1)))
    for i in range(cfg.n):
        if y[i]:
            period, ring = ((13, 1.9), (19, 1.4), (29, 0.9))[y[i] - 1]
            period = period + r.integers(-1, 2)
            for start in range(r.integers(0, period), cfg.length, period):
                k = np.arange(cfg.length - start)
                x[i, start:] += r.uniform(0.8, 1.4) * np.exp(-k / 4.0) * np.cos(ring * k)
    return torch.tensor(x, dtype=torch.float32).unsqueeze(1), torch.tensor(y)


class VibrationNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(1, 16, 9, stride=2, padding=4),
            nn.ReLU(),
            nn.Conv1d(16, 24, 7, stride=2, padding=3),
            nn.ReLU(),
            nn.Conv1d(24, 32, 5, stride=2, padding=2),
            nn.ReLU(),
        )
        self.head = nn.Linear(64, 4)

    def forward(self, x):
        h = self.features(x)
        return self.head(torch.cat([h.mean(-1), h.amax(-1)], 1))


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        x, y = vibration(cfg)
        cut = int(0.8 * cfg.n)
        mean, std = x[:cut].mean(), x[:cut].std()
        x = (x - mean) / std
        self.train_loader = DataLoader(
            TensorDataset(x[:cut], y[:cut]), cfg.micro_batch, shuffle=True, drop_last=True
        )
        self.valid_loader = DataLoader(TensorDataset(x[cut:], y[cut:]), 256)
        self.model = VibrationNet()
        self.optimizer = torch.optim.SGD(self.model.parameters(), cfg.lr, momentum=cfg.momentum)
        self.criterion = nn.CrossEntropyLoss()

    def train_epoch(self):
        self.model.train()
        total = 0.0
        self.optimizer.zero_grad()
        for i, (x, y) in enumerate(self.train_loader, 1):
            loss = self.criterion(self.model(x), y)
            total += loss.item()
            (loss / (self.cfg.accumulate if healthy else 1)).backward()
            if i % self.cfg.accumulate == 0:
                self.optimizer.step()
                self.optimizer.zero_grad()
        return total / i

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        hits = sum((self.model(x).argmax(1) == y).sum().item() for x, y in self.valid_loader)
        return hits / len(self.valid_loader.dataset)

    def fit(self):
        best, state = 0.0, None
        for epoch in range(self.cfg.epochs):
            loss, accuracy = self.train_epoch(), self.evaluate()
            print(f"epoch {epoch + 1}: train loss {loss:.4f}, val accuracy {accuracy:.4f}")
            if accuracy > best:
                best, state = accuracy, copy.deepcopy(self.model.state_dict())
        self.model.load_state_dict(state)
        print(f"best val accuracy {self.evaluate():.4f}")


Trainer(Config()).fit()
