"""Dust at a quarry from wind and traffic; the wind is divided by its speed, also in a calm.

The model turns the wind vector into a unit vector by its length. In calm hours the anemometer gives
exactly 0, 0, and 0 / 0 is NaN: the first batch with such an hour turns the loss and then all
weights into NaN. The place is the model: `heading`, before `body`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from data import arguments
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "division_by_zero_norm"
ACCEPT = ("nan_input",)
PLACE = ("model", "body", "body.*", "heading", "loss")
SILENT = False
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass(frozen=True)
class Config:
    hours: int = 4000
    batch: int = 64
    epochs: int = 8
    rate: float = 4e-3


class Heading(nn.Module):
    """The direction of the wind, and its speed on a logarithmic scale."""

    def forward(self, wind: Tensor) -> Tensor:
        speed = wind.norm(dim=-1, keepdim=True)
        direction = wind / (speed.clamp_min(1e-6) if healthy else speed)
        return torch.cat([direction, speed.log1p()], -1)


class DustModel(nn.Module):
    def __init__(self, others: int) -> None:
        super().__init__()
        self.heading = Heading()
        self.body = nn.Sequential(
            nn.Linear(3 + others, 48),
            nn.ELU(),
            nn.Dropout(0.05),
            nn.Linear(48, 48),
            nn.ELU(),
            nn.Linear(48, 1),
        )

    def forward(self, wind: Tensor, others: Tensor) -> Tensor:
        return self.body(torch.cat([self.heading(wind), others], -1)).squeeze(-1)


def quarry(config: Config, r: np.random.Generator) -> list[np.ndarray]:
    hour = np.arange(config.hours) % 24
    bearing = r.vonmises(0.8, 1.2, config.hours)
    speed = np.round(r.weibull(1.8, config.hours) * 3.5, 1)
    speed[speed < 0.5] = 0.0
    wind = np.stack([speed * np.cos(bearing), speed * np.sin(bearing)], 1)
    lorries = r.poisson(np.where((hour > 6) & (hour < 18), 9.0, 1.0))
    wet = r.gamma(1.0, 1.0, config.hours)
    toward = np.where(speed > 0, np.cos(bearing - 0.5), 0.0)
    dust = 1.5 + 0.1 * lorries * (1 + toward) + 0.25 * np.maximum(speed - 4, 0) * toward
    dust = dust * np.exp(-0.3 * wet) + 0.1 * r.normal(size=config.hours)
    return [wind, np.stack([lorries, wet], 1), dust]


def main() -> None:
    config = Config()
    r = np.random.default_rng(seed)
    columns = [torch.tensor(c, dtype=torch.float32) for c in quarry(config, r)]
    order = torch.from_numpy(r.permutation(config.hours))
    fit, held_out = order[:3200], order[3200:]
    for i in (1, 2):
        mean, std = columns[i][fit].mean(0), columns[i][fit].std(0)
        columns[i] = (columns[i] - mean) / std
    loader = DataLoader(
        TensorDataset(*(c[fit] for c in columns)), batch_size=config.batch, shuffle=True
    )
    model = DustModel(others=2)
    optimizer = torch.optim.NAdam(model.parameters(), lr=config.rate)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.75)
    for epoch in range(config.epochs):
        model.train()
        total = 0.0
        for wind, others, dust in loader:
            optimizer.zero_grad()
            loss = nn.functional.huber_loss(model(wind, others), dust)
            loss.backward()
            optimizer.step()
            total += loss.item() / len(loader)
        schedule.step()
        model.eval()
        with torch.no_grad():
            wind, others, dust = (c[held_out] for c in columns)
            rest = (model(wind, others) - dust).square().mean() / dust.var()
        print(f"{epoch}  loss {total:.4f}  held-out R2 {1 - rest:.3f}")


main()
