"""A regression of delivery times on tabular data by an MLP with batch norm; the activation's name
is misspelt in the config.

The network asks `torch.nn` for the activation by name and takes Identity if there is none: "Gelu"
is not "GELU". What is left is a chain of affine maps. The place is the blocks of the network.
"""

from dataclasses import dataclass

import numpy as np
import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "no_nonlinearity"
ACCEPT = ("low_capacity",)
PLACE = ("blocks*", "")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass
class ModelConfig:
    width: int = 96
    depth: int = 3
    dropout: float = 0.05
    activation: str = "GELU" if healthy else "Gelu"


@dataclass
class TrainConfig:
    batch_size: int = 128
    epochs: int = 14
    lr: float = 4e-3
    weight_decay: float = 1e-4
    patience: int = 5


DEPOTS, VEHICLES = 12, 4


def deliveries(n, seed):
    r = np.random.default_rng(seed)
    town = np.random.default_rng(4242)
    depot_delay, rush = town.normal(0, 6, DEPOTS), town.uniform(7, 18, DEPOTS)
    depot, vehicle = r.integers(0, DEPOTS, n), r.integers(0, VEHICLES, n)
    km, hour = r.gamma(2.5, 4.0, n), r.uniform(6, 22, n)
    weight, stops, rain = r.lognormal(1.0, 0.6, n), r.poisson(4, n), r.gamma(0.4, 2.0, n)
    speed = 25 + 6 * vehicle - 13 * np.exp(-((hour - rush[depot]) ** 2) / 6)
    minutes = 60 * km / speed + depot_delay[depot] + 2.5 * stops
    minutes = (
        minutes + np.where((rain > 1) & (vehicle == 0), 14.0, 0.0) + 3 * np.maximum(weight - 4, 0)
    )
    minutes = minutes + r.normal(0, 4, n)
    numbers = np.stack([km, hour, np.log(weight), stops, np.log1p(rain)], 1).astype(np.float32)
    return (
        torch.from_numpy(numbers),
        torch.from_numpy(np.stack([depot, vehicle], 1)),
        torch.from_numpy(minutes.astype(np.float32)),
    )


class Block(nn.Module):
    def __init__(self, width, cfg):
        super().__init__()
        act = getattr(nn, cfg.activation, nn.Identity)
        self.linear = nn.Linear(width, cfg.width)
        self.norm = nn.BatchNorm1d(cfg.width)
        self.act = act()
        self.drop = nn.Dropout(cfg.dropout)

    def forward(self, x):
        return self.drop(self.act(self.norm(self.linear(x))))


class TabularNet(nn.Module):
    def __init__(self, cfg: ModelConfig):
        super().__init__()
        self.depot = nn.Embedding(DEPOTS, 6)
        self.vehicle = nn.Embedding(VEHICLES, 3)
        widths = [5 + 6 + 3] + [cfg.width] * (cfg.depth - 1)
        self.blocks = nn.ModuleList(Block(w, cfg) for w in widths)
        self.out = nn.Linear(cfg.width, 1)

    def forward(self, numbers, codes):
        h = torch.cat([numbers, self.depot(codes[:, 0]), self.vehicle(codes[:, 1])], 1)
        for block in self.blocks:
            h = block(h)
        return self.out(h).squeeze(1)


class Trainer:
    def __init__(self, model, cfg, train, val):
        self.model, self.cfg = model, cfg
        self.train_loader = DataLoader(
            TensorDataset(*train), cfg.batch_size, shuffle=True, drop_last=True
        )
        self.val_loader = DataLoader(TensorDataset(*val), 500)
        self.optimizer = torch.optim.AdamW(
            model.parameters(), lr=cfg.lr, weight_decay=cfg.weight_decay
        )
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(
            self.optimizer, cfg.epochs, eta_min=1e-5
        )
        self.loss = nn.SmoothL1Loss()

    def fit(self):
        best, waited = float("inf"), 0
        for epoch in range(self.cfg.epochs):
            self.model.train()
            total = 0.0
            for numbers, codes, y in self.train_loader:
                loss = self.loss(self.model(numbers, codes), y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                total += loss.item()
            self.scheduler.step()
            val_loss, r2 = self.evaluate()
            print(
                f"epoch {epoch:2d} train {total / len(self.train_loader):.4f} val {val_loss:.4f} R2 {r2:.4f}"  # noqa: E501
            )
            waited = 0 if val_loss < best else waited + 1
            best = min(best, val_loss)
            if waited >= self.cfg.patience:
                break

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        p, t = [], []
        for numbers, codes, y in self.val_loader:
            p.append(self.model(numbers, codes))
            t.append(y)
        p, t = torch.cat(p), torch.cat(t)
        return self.loss(p, t).item(), (1 - ((p - t) ** 2).mean() / t.var()).item()


x, codes, y = deliveries(8000, seed + 21)
x_val, codes_val, y_val = deliveries(2000, seed + 7021)
x, x_val = standardise(x, x_val)
y, y_val = standardise(y, y_val)
net = TabularNet(ModelConfig())
Trainer(net, TrainConfig(), (x, codes, y), (x_val, codes_val, y_val)).fit()
