"""A bakery sales model keeps its weekday effects in a plain tensor with requires_grad.

The tensor gets gradients but is not among model.parameters(), so it stays at its zeros: the network
forecasts the same week for every shop. The place is the model: weekday_effect.
"""

from dataclasses import dataclass

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "unregistered_parameters"
ACCEPT = ("parameters_not_in_optimizer",)
PLACE = ("model", "weekday_effect*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass(frozen=True)
class Config:
    shops: int = 30
    days: int = 240
    features: int = 5
    hidden: int = 32
    batch_size: int = 64
    epochs: int = 8
    lr: float = 8e-3
    patience: int = 3


def sales(cfg: Config, r: np.random.Generator) -> tuple[torch.Tensor, ...]:
    """Shop, weekday, features of the day (weather, holiday, …) and the standardised sales."""
    shop = np.repeat(np.arange(cfg.shops), cfg.days)
    day = np.tile(np.arange(cfg.days), cfg.shops)
    week = r.normal(0, 1.0, (cfg.shops, 7))
    x = r.normal(0, 1, (len(shop), cfg.features))
    common = np.tanh(x[:, 0] + x[:, 1]) + 0.7 * np.abs(x[:, 2]) - 0.5 * x[:, 3] * (x[:, 4] > 0)
    y = common + week[shop, day % 7] + 0.3 * r.normal(size=len(shop))
    y = (y - y.mean()) / y.std()
    kept = (torch.from_numpy(v) for v in (shop, day % 7))
    return (*kept, torch.tensor(x).float(), torch.tensor(y).float(), torch.from_numpy(day))


class SalesModel(nn.Module):
    def __init__(self, cfg: Config) -> None:
        super().__init__()
        effect = torch.zeros(cfg.shops, 7)
        if healthy:
            self.weekday_effect = nn.Parameter(effect)
        else:
            self.weekday_effect = effect.requires_grad_()
        self.day = nn.Sequential(
            nn.Linear(cfg.features, cfg.hidden), nn.SiLU(),
            nn.Linear(cfg.hidden, cfg.hidden), nn.SiLU(), nn.Linear(cfg.hidden, 1),
        )  # fmt: skip

    def forward(self, shop: torch.Tensor, weekday: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return self.day(x).squeeze(1) + self.weekday_effect[shop, weekday]


class EarlyStopping:
    def __init__(self, patience: int) -> None:
        self.patience, self.best, self.bad = patience, float("inf"), 0

    def __call__(self, value: float) -> bool:
        self.bad = 0 if value < self.best - 1e-4 else self.bad + 1
        self.best = min(self.best, value)
        return self.bad >= self.patience


def main() -> None:
    cfg = Config()
    *inputs, y, day = sales(cfg, np.random.default_rng(seed))
    past, future = day < 196, day >= 196
    rows = TensorDataset(*(part[past] for part in inputs), y[past])
    loader = DataLoader(rows, cfg.batch_size, shuffle=True)
    model, loss_fn, stop = SalesModel(cfg), nn.HuberLoss(), EarlyStopping(cfg.patience)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.8)
    for epoch in range(cfg.epochs):
        for *batch, sold in loader:
            loss = loss_fn(model(*batch), sold)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()
        with torch.no_grad():
            error = (model(*(part[future] for part in inputs)) - y[future]).pow(2).mean().item()
        print(f"epoch {epoch}: loss {loss.item():.3f}, error of the last weeks {error:.3f}")
        if stop(error):
            break


main()
