"""A forecast of hotel nights uses SGD with momentum=0.999, and the loss swings to and fro.

Someone put one nine too many into the config: the velocity remembers a thousand steps, of which the
whole run has six hundred. The weights overshoot again and again. The place is the optimizer.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "bad_optimizer_settings"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("optimizer",)
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass(frozen=True)
class Config:
    momentum: float = 0.9 if healthy else 0.999
    lr: float = 0.01
    history: int = 28
    batch_size: int = 32
    epochs: int = 10
    hotels: int = 12


Callback = Callable[[int, float], None]


def bookings(cfg: Config, days: int, r: np.random.Generator) -> np.ndarray:
    day = np.arange(days)
    level, weekly = r.normal(0, 1, (cfg.hotels, 1)), r.normal(0, 1, (cfg.hotels, 7))
    fair = np.zeros((cfg.hotels, days))
    for hotel in range(cfg.hotels):
        for start in r.choice(days, 4, replace=False):
            fair[hotel, start : start + 6] += 2.5
    season = np.sin(2 * np.pi * day / 90 + r.uniform(0, 6, (cfg.hotels, 1)))
    noise = 0.25 * r.normal(size=(cfg.hotels, days))
    return level + weekly[:, day % 7] + season + fair + noise


def windows(series: np.ndarray, history: int) -> tuple[torch.Tensor, torch.Tensor]:
    cut = np.lib.stride_tricks.sliding_window_view(series, history + 1, axis=1)
    cut = torch.tensor(cut.reshape(-1, history + 1), dtype=torch.float32)
    return cut[:, :-1], cut[:, -1]


class Fitting:
    def __init__(self, model: nn.Module, cfg: Config, callbacks: list[Callback]) -> None:
        self.model, self.cfg, self.callbacks = model, cfg, callbacks
        self.optimizer = torch.optim.SGD(model.parameters(), lr=cfg.lr, momentum=cfg.momentum)
        self.loss = nn.SmoothL1Loss()

    def run(self, loader: DataLoader) -> None:
        for epoch in range(self.cfg.epochs):
            total = 0.0
            for past, nights in loader:
                loss = self.loss(self.model(past).squeeze(1), nights)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                total += loss.item()
            for callback in self.callbacks:
                callback(epoch, total / len(loader))


def main() -> None:
    cfg = Config()
    series = bookings(cfg, 240, np.random.default_rng(seed))
    train, rest = series[:, :190], series[:, 190:]
    mean, std = train.mean(), train.std()
    x, y = windows((train - mean) / std, cfg.history)
    x_val, y_val = windows((rest - mean) / std, cfg.history)
    model = nn.Sequential(
        nn.Linear(cfg.history, 48), nn.GELU(), nn.Linear(48, 24), nn.GELU(), nn.Linear(24, 1)
    )

    @torch.no_grad()
    def report(epoch: int, loss: float) -> None:
        error = (model(x_val).squeeze(1) - y_val).abs().mean().item()
        print(f"epoch {epoch}: loss {loss:.3f}, held-out absolute error {error:.3f}")

    loader = DataLoader(TensorDataset(x, y), cfg.batch_size, shuffle=True)
    Fitting(model, cfg, [report]).run(loader)


main()
