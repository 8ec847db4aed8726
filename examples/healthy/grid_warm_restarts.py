"""The load of the next hour in a city's grid from the last day, by a GRU with warm restarts.

The learning rate falls along a cosine, jumps back to its start, and falls again over twice as many
epochs. After each jump the loss is worse for a few batches. What counts is the state at
the end of a cycle, and the last cycle ends with the run.
"""

from dataclasses import dataclass

import numpy as np
import torch
from data import arguments
from torch import nn

ODD = "the learning rate jumps back up twice (warm restarts), with a small rise of the loss"


@dataclass
class Config:
    window: int = 24
    hidden: int = 20
    lr: float = 1e-2
    batch: int = 64
    cycle: int = 1
    epochs: int = 7  # cycles of 1, 2 and 4 epochs


class Forecaster(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.gru = nn.GRU(1, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x):
        states, _ = self.gru(x)
        return x[:, -1, 0] + self.head(states[:, -1]).squeeze(-1)


class Trainer:
    def __init__(self, config, seed):
        self.config = config
        series = self.load_series(seed)
        windows = series.unfold(0, config.window + 1, 1)
        x, y = windows[:, :-1, None], windows[:, -1]
        cut, gap = 1500, config.window
        self.x, self.y = x[:cut], y[:cut]
        self.x_val, self.y_val = x[cut + gap :], y[cut + gap :]
        self.model = Forecaster(config.hidden)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), config.lr, weight_decay=1e-3)
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(
            self.optimizer, T_0=config.cycle, T_mult=2, eta_min=1e-5
        )

    @staticmethod
    def load_series(seed, hours=2000):
        rng = np.random.default_rng(seed)
        t = np.arange(hours)
        daily = np.sin(2 * np.pi * (t - 8) / 24) + 0.5 * np.sin(4 * np.pi * (t - 5) / 24)
        load = daily * np.where(t // 24 % 7 < 5, 1.0, 0.5) + np.cumsum(rng.normal(0, 0.03, hours))
        load = load + rng.normal(0, 0.05, hours)
        return torch.tensor((load - load[:1500].mean()) / load[:1500].std()).float()

    def train_epoch(self, epoch):
        self.model.train()
        batches = torch.randperm(len(self.x)).split(self.config.batch)
        total = 0.0
        for i, rows in enumerate(batches):
            loss = nn.functional.mse_loss(self.model(self.x[rows]), self.y[rows])
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.scheduler.step(epoch + (i + 1) / len(batches))
            total += loss.item()
        return total / len(batches)

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        forecast = self.model(self.x_val)
        persistence = (self.x_val[:, -1, 0] - self.y_val).abs().mean().item()
        return (forecast - self.y_val).abs().mean().item(), persistence

    def fit(self):
        for epoch in range(self.config.epochs):
            loss = self.train_epoch(epoch)
            mae, persistence = self.evaluate()
            lr = self.optimizer.param_groups[0]["lr"]
            print(
                f"epoch {epoch + 1:2d} loss {loss:.4f} val MAE {mae:.4f} "
                f"(persistence {persistence:.4f}) lr {lr:.5f}"
            )


if __name__ == "__main__":
    _, seed = arguments(__doc__)
    Trainer(Config(), seed).fit()
