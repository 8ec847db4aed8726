"""A forecast of a reservoir's inflow cuts its windows a day late: the input has the first answer.

The window data set ends the history at origin + 1: the forecaster reads the first value of its
answer. Validation uses the same windows and looks better than it is; in use, with only the past,
the error is larger. The place is the input: the windows that the data set cuts.
"""

from dataclasses import dataclass

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "future_leak"
ACCEPT = ("target_leak",)
PLACE = ("input", "loader")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass(frozen=True)
class Config:
    history: int = 30
    horizon: int = 3
    epochs: int = 8
    lr: float = 4e-3


def inflow(days: int, r: np.random.Generator) -> np.ndarray:
    """Rain drains through a store, melt water has its year, a power plant upstream its week."""
    rain = r.gamma(1.0, 1.0, days) * (r.random(days) < 0.3)
    plant = np.array([0.6, 1.1, 1.3, 0.9, 0.2, -1.6, -2.0])
    store, flow = 0.0, np.zeros(days)
    for day in range(days):
        store = 0.7 * store + 0.5 * rain[day]
        melt = 2 * max(np.sin(2 * np.pi * day / 365), 0)
        flow[day] = store + melt + plant[day % 7] + 0.1 * r.normal()
    return flow


class Windows(Dataset):
    """Pairs of history and following days, with the history's end `late` days after the origin."""

    def __init__(self, flow: np.ndarray, cfg: Config, late: int) -> None:
        self.flow = torch.tensor(flow, dtype=torch.float32)
        self.cfg, self.late = cfg, late

    def __len__(self) -> int:
        return len(self.flow) - self.cfg.history - self.cfg.horizon

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        origin = index + self.cfg.history
        end = origin + self.late
        past = self.flow[end - self.cfg.history : end].unsqueeze(1)
        return past, self.flow[origin : origin + self.cfg.horizon]


class Forecaster(nn.Module):
    def __init__(self, cfg: Config) -> None:
        super().__init__()
        self.encoder = nn.GRU(1, 32, batch_first=True)
        self.head = nn.Linear(32, cfg.horizon)

    def forward(self, past: torch.Tensor) -> torch.Tensor:
        return self.head(self.encoder(past)[1][-1])


@torch.no_grad()
def mean_error(model: nn.Module, windows: Windows) -> list[float]:
    past, future = next(iter(DataLoader(windows, batch_size=len(windows))))
    return [round(e, 3) for e in (model(past) - future).abs().mean(0).tolist()]


def main() -> None:
    cfg = Config()
    train, test = np.split(inflow(3200, np.random.default_rng(seed)), [2600])
    test, train = ((part - train.mean()) / train.std() for part in (test, train))
    late = 0 if healthy else 1
    val_set, in_use = Windows(test, cfg, late), Windows(test, cfg, 0)
    loader = DataLoader(Windows(train, cfg, late), 64, shuffle=True)
    model, steps = Forecaster(cfg), cfg.epochs * len(loader)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, cfg.lr, steps)
    for epoch in range(cfg.epochs):
        for past, future in loader:
            loss = nn.functional.mse_loss(model(past), future)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
        print(f"epoch {epoch}: loss {loss.item():.3f}, errors by day {mean_error(model, val_set)}")
    print(f"in use: errors by day {mean_error(model, in_use)}")


main()
