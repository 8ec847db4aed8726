"""A surrogate of a pump's efficiency map; the cosine schedule is made and never stepped.

The user starts with the high rate that the cosine would bring down, but the loop has no
`scheduler.step()`: the rate stays at 0.01 to the end and the error can't settle. The place is the
scheduler in the loop.
"""

from dataclasses import dataclass

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "schedule_never_steps"
ACCEPT = ()
PLACE = ("loop", "optimizer", "scheduler")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass
class Config:
    n: int = 4096
    width: int = 64
    batch_size: int = 64
    epochs: int = 40
    lr: float = 1e-2


def pump_runs(cfg):
    r = np.random.default_rng(300 + seed)
    flow, speed, angle, temp, wear = r.uniform(-1, 1, (5, cfg.n))
    peak = 0.3 * speed + 0.2 * angle
    eff = np.exp(-2 * (flow - peak) ** 2) * (1 - 0.15 * wear) + 0.1 * np.sin(3 * speed) * flow
    eff += 0.05 * temp * angle + 0.005 * r.normal(size=cfg.n)
    x = np.stack([flow, speed, angle, temp, wear], 1)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(eff, dtype=torch.float32)


def build_model(width):
    return nn.Sequential(
        nn.Linear(5, width),
        nn.SiLU(),
        nn.Linear(width, width),
        nn.SiLU(),
        nn.Linear(width, width),
        nn.SiLU(),
        nn.Linear(width, 1),
        nn.Flatten(0),
    )


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        return (model(x) - y).pow(2).mean().sqrt().item()


def train(cfg):
    x, y = pump_runs(cfg)
    cut = int(0.8 * cfg.n)
    y = (y - y[:cut].mean()) / y[:cut].std()
    x = (x - x[:cut].mean(0)) / x[:cut].std(0)
    model = build_model(cfg.width)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    steps = cfg.epochs * (cut // cfg.batch_size)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    for epoch in range(cfg.epochs):
        model.train()
        order, total = torch.randperm(cut), 0.0
        batches = order[: cut // cfg.batch_size * cfg.batch_size].split(cfg.batch_size)
        for rows in batches:
            loss = nn.functional.mse_loss(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if healthy:
                scheduler.step()
            total += loss.item()
        rmse = evaluate(model, x[cut:], y[cut:])
        rate = optimizer.param_groups[0]["lr"]
        print(
            f"epoch {epoch + 1:2d} lr {rate:.5f} "
            f"train {total / len(batches):.5f} val rmse {rmse:.4f}"
        )
    print(f"last val rmse {rmse:.4f}")


train(Config())
