"""Hourly demand of a bike-sharing scheme by a four-layer perceptron without activations.

The user stacked Linear and Dropout layers and forgot the ReLUs in between; without them the four
layers are one linear map, and rush hours (which depend on hour and weekday together) can't be
fitted. The place is the stack `mlp`.
"""

import copy
from dataclasses import dataclass

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "no_nonlinearity"
ACCEPT = ("low_capacity",)
PLACE = ("mlp*",)
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass
class Config:
    hours: int = 5000
    hidden: tuple = (64, 64, 32)
    dropout: float = 0.05
    batch_size: int = 100
    epochs: int = 30
    lr: float = 2e-3
    patience: int = 8


def demand(cfg):
    r = np.random.default_rng(14 + seed)
    hour, day = r.integers(0, 24, cfg.hours), r.integers(0, 7, cfg.hours)
    season = r.uniform(0, 6.283, cfg.hours)
    temp = 12 - 10 * np.cos(season) + 4 * np.sin((hour - 8) / 3.82) + r.normal(0, 3, cfg.hours)
    humid, wind = r.uniform(0.2, 1, cfg.hours), r.gamma(2, 6, cfg.hours)
    work = day < 5
    rush = np.exp(-(((hour - 8) / 1.5) ** 2)) + np.exp(-(((hour - 17.5) / 2) ** 2))
    leisure = np.exp(-(((hour - 14) / 4) ** 2))
    y = np.where(work, 2.0 * rush + 0.4 * leisure, 1.6 * leisure) * np.exp(
        -(((temp - 22) / 14) ** 2)
    )
    y = y * (1 - 0.5 * (humid > 0.8)) - 0.005 * wind + r.normal(0, 0.08, cfg.hours)
    x = np.stack(
        [
            np.sin(hour * 0.2618),
            np.cos(hour * 0.2618),
            np.sin(hour * 0.5236),
            np.cos(hour * 0.5236),
            work,
            temp,
            humid,
            wind,
            np.cos(season),
        ],
        1,
    )
    return x.astype("float64"), y


class DemandNet(nn.Module):
    def __init__(self, inputs, cfg):
        super().__init__()
        layers = []
        for width in cfg.hidden:
            layers += [nn.Linear(inputs, width)]
            layers += [nn.ReLU()] if healthy else []
            layers += [nn.Dropout(cfg.dropout)]
            inputs = width
        self.mlp = nn.Sequential(*layers, nn.Linear(inputs, 1))

    def forward(self, x):
        return self.mlp(x).squeeze(-1)


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        return (1 - (model(x) - y).pow(2).mean() / y.var()).item()


def fit(cfg):
    x, y = demand(cfg)
    cut = int(0.8 * len(x))
    x, y = (x - x[:cut].mean(0)) / x[:cut].std(0), (y - y[:cut].mean()) / y[:cut].std()
    x, y = torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)
    model = DemandNet(x.shape[1], cfg)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=1e-3)
    best, best_state, since = -1.0, None, 0
    for epoch in range(cfg.epochs):
        model.train()
        total = 0.0
        for rows in torch.randperm(cut).split(cfg.batch_size):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x[rows]), y[rows])
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows) / cut
        r2 = evaluate(model, x[cut:], y[cut:])
        print(f"epoch {epoch:02d} - train mse {total:.4f} - val r2 {r2:.4f}")
        since += 1
        if r2 > best:
            best, best_state, since = r2, copy.deepcopy(model.state_dict()), 0
        if since >= cfg.patience:
            print("early stop")
            break
    model.load_state_dict(best_state)
    print(f"best val r2 {evaluate(model, x[cut:], y[cut:]):.4f}")


fit(Config())
