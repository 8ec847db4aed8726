"""A wind forecaster decays its rate every 100 steps of a counter that restarts every 40 batches.

The condition looks at the loader's index, which begins again at each epoch and never comes to 100;
Adam keeps its first, large rate to the end, and the weights keep jumping about. The place is the
loop: the scheduler.
"""

from dataclasses import dataclass

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "schedule_never_steps"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("learning_rate", "loop", "optimizer")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)


@dataclass(frozen=True)
class ForecastConfig:
    history: int = 24
    ahead: int = 4
    hidden: int = 64
    lr: float = 0.04
    gamma: float = 0.4
    decay_every: int = 100
    batch_size: int = 32
    epochs: int = 15
    clip: float = 2.0


def wind(hours: int, r: np.random.Generator) -> np.ndarray:
    """A daily breeze that waxes and wanes, squalls with a beat of their own, and noise."""
    hour = np.arange(hours)
    breeze = np.sin(2 * np.pi * hour / 24) * (1 + 0.6 * np.sin(2 * np.pi * hour / 91))
    squalls = np.tanh(3 * np.sin(2 * np.pi * hour / 13.7 + breeze))
    return breeze + 0.7 * squalls + 0.08 * r.normal(size=hours)


def windows(speed: np.ndarray, cfg: ForecastConfig) -> tuple[torch.Tensor, torch.Tensor]:
    cut = np.lib.stride_tricks.sliding_window_view(speed, cfg.history + cfg.ahead)
    cut = torch.tensor(cut.copy(), dtype=torch.float32)
    return cut[:, : cfg.history], cut[:, cfg.history :]


class Forecaster(nn.Module):
    def __init__(self, cfg: ForecastConfig) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(cfg.history, cfg.hidden), nn.ReLU(),
            nn.Linear(cfg.hidden, cfg.hidden), nn.ReLU(), nn.Linear(cfg.hidden, cfg.ahead),
        )  # fmt: skip

    def forward(self, past: torch.Tensor) -> torch.Tensor:
        return past[:, -1:] + self.net(past)


def main() -> None:
    cfg = ForecastConfig()
    speed = wind(1800, np.random.default_rng(seed))
    train, rest = speed[:1307], speed[1307:]
    mean, std = train.mean(), train.std()
    x, y = windows((train - mean) / std, cfg)
    x_val, y_val = windows((rest - mean) / std, cfg)
    loader = DataLoader(TensorDataset(x, y), cfg.batch_size, shuffle=True)
    model, loss_fn = Forecaster(cfg), nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, cfg.gamma)
    global_step = 0
    for epoch in range(cfg.epochs):
        for step, (past, future) in enumerate(loader, 1):
            loss = loss_fn(model(past), future)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), cfg.clip)
            optimizer.step()
            global_step += 1
            if (global_step if healthy else step) % cfg.decay_every == 0:
                scheduler.step()
        with torch.no_grad():
            error = loss_fn(model(x_val), y_val).item()
        print(f"epoch {epoch}: loss {loss.item():.4f}, held-out MSE {error:.4f}")


main()
