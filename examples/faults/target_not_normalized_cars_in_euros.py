"""Prices of used cars from a table; the network is fitted to prices in whole euros.

The user standardises the features but feeds the price as it comes (about 13,000 +- 7,000) to the
mean squared error, with an output layer that starts near 0. The loss starts at 10^8 and the
network spends the training on reaching the mean. The place is the target (loss, input of the
loop).
"""

from dataclasses import dataclass

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "target_not_normalized"
ACCEPT = ()
PLACE = ("loss", "loop", "input*", "head*", "target*")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass
class Config:
    n: int = 4000
    brands: int = 12
    batch_size: int = 64
    epochs: int = 25
    lr: float = 1e-3
    patience: int = 6


def read_cars(cfg):
    r = np.random.default_rng(5 + seed)
    brand = r.integers(0, cfg.brands, cfg.n)
    level = r.normal(0, 0.25, cfg.brands)
    age, km = r.uniform(0, 15, cfg.n), r.gamma(3, 30, cfg.n)
    power, doors = r.normal(110, 30, cfg.n).clip(45), r.choice([3, 5], cfg.n)
    automatic, diesel = r.integers(0, 2, cfg.n), r.integers(0, 2, cfg.n)
    log_price = 9.9 + level[brand] - 0.085 * age - 0.0022 * km + 0.006 * (power - 110)
    log_price += 0.08 * automatic + 0.05 * diesel * (age < 6) + 0.03 * (doors == 5)
    price = np.exp(log_price + r.normal(0, 0.1, cfg.n))
    x = np.stack([age, km, power, doors, automatic, diesel], 1)
    return x, brand, price


class CarNet(nn.Module):
    def __init__(self, brands):
        super().__init__()
        self.brand = nn.Embedding(brands, 4)
        self.body = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
        self.head = nn.Linear(32, 1)

    def forward(self, x, brand):
        return self.head(self.body(torch.cat([x, self.brand(brand)], 1))).squeeze(1)


def r2_and_rmse(model, x, brand, price, center, scale):
    model.eval()
    with torch.no_grad():
        pred = model(x, brand) * scale + center
    error = (pred - price).pow(2)
    return (1 - error.mean() / price.var()).item(), error.mean().sqrt().item()


def main(cfg):
    x, brand, price = read_cars(cfg)
    cut = int(0.8 * cfg.n)
    x = (x - x[:cut].mean(0)) / x[:cut].std(0)
    x, price = (torch.tensor(a, dtype=torch.float32) for a in (x, price))
    brand = torch.tensor(brand)
    center, scale = (price[:cut].mean(), price[:cut].std()) if healthy else (0.0, 1.0)
    target = (price - center) / scale
    model = CarNet(cfg.brands)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    best, state, bad = float("inf"), None, 0
    for epoch in range(cfg.epochs):
        model.train()
        losses = []
        for rows in torch.randperm(cut).split(cfg.batch_size):
            loss = nn.functional.mse_loss(model(x[rows], brand[rows]), target[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        r2, rmse = r2_and_rmse(model, x[cut:], brand[cut:], price[cut:], center, scale)
        print(f"{epoch:3d} | train {np.mean(losses):14.4f} | val R2 {r2:7.4f} | RMSE {rmse:8.1f}")
        if rmse < best:
            best, bad = rmse, 0
            state = {k: v.clone() for k, v in model.state_dict().items()}
        else:
            bad += 1
        if bad >= cfg.patience:
            break
    model.load_state_dict(state)
    r2, rmse = r2_and_rmse(model, x[cut:], brand[cut:], price[cut:], center, scale)
    print(f"final val R2 {r2:.4f}  RMSE {rmse:.1f} euros")


main(Config())
