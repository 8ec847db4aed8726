"""A forecast of a battery's voltage with its uncertainty: a sound training whose loss is
negative.

It looks odd because the loss falls below 0 and goes on falling: it's the negative log-likelihood
of a density, and a narrow Gaussian has a density above 1. The predicted deviations agree with the
real errors (the share of measurements within 1 sigma is printed), so the number is honest.
"""

import copy
from dataclasses import dataclass

import numpy as np
import torch
from data import arguments
from torch import nn

ODD = "a loss below zero that goes on falling: the likelihood of a narrow density"
_, seed = arguments(__doc__)


@dataclass
class Config:
    n: int = 4000
    batch_size: int = 80
    epochs: int = 20
    lr: float = 2e-3


def discharge(cfg):
    r = np.random.default_rng(7 + seed)
    charge, current = r.uniform(0.02, 1, cfg.n), r.uniform(0.2, 2, cfg.n)
    temp, cycles = r.normal(22, 8, cfg.n), r.uniform(0, 1, cfg.n)
    volt = np.sqrt(charge) - 0.15 * current * (1 + 0.4 * cycles) + 0.004 * (temp - 22) * current
    volt = (volt - volt.mean()) / volt.std()
    volt = volt + (0.03 + 0.08 * cycles) * r.normal(size=cfg.n)
    x = np.stack([charge, current, temp, cycles], 1)
    return x, volt


class DensityNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 48), nn.SiLU(), nn.Linear(48, 48), nn.SiLU())
        self.mean, self.log_std = nn.Linear(48, 1), nn.Linear(48, 1)

    def forward(self, x):
        h = self.body(x)
        return self.mean(h).squeeze(1), self.log_std(h).squeeze(1).clamp(-5, 2)


def negative_log_likelihood(mean, log_std, y):
    return (0.5 * ((y - mean) / log_std.exp()) ** 2 + log_std + 0.9189).mean()


@torch.no_grad()
def evaluate(model, x, y):
    model.eval()
    mean, log_std = model(x)
    within = ((y - mean).abs() < log_std.exp()).float().mean().item()
    return negative_log_likelihood(mean, log_std, y).item(), within


def main(cfg):
    x, y = discharge(cfg)
    cut = int(0.75 * cfg.n)
    x = (x - x[:cut].mean(0)) / x[:cut].std(0)
    x, y = torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)
    model = DensityNet()
    optimizer = torch.optim.Adam(model.parameters(), cfg.lr)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, cfg.epochs)
    best, state = float("inf"), None
    for epoch in range(cfg.epochs):
        model.train()
        total = 0.0
        for rows in torch.randperm(cut).split(cfg.batch_size):
            optimizer.zero_grad()
            loss = negative_log_likelihood(*model(x[rows]), y[rows])
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            total += loss.item() * len(rows)
        scheduler.step()
        val, within = evaluate(model, x[cut:], y[cut:])
        print(
            f"epoch {epoch:2d}  train {total / cut:.4f}  val {val:.4f}  within 1 sigma {within:.3f}"
        )
        if val < best:
            best, state = val, copy.deepcopy(model.state_dict())
    model.load_state_dict(state)
    val, within = evaluate(model, x[cut:], y[cut:])
    print(f"best val {val:.4f}  within 1 sigma {within:.3f}")


main(Config())
