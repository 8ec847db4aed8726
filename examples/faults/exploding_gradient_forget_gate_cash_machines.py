"""Withdrawals at cash machines are forecast by an own LSTM cell whose forget gate lacks its
sigmoid, so state and gradient grow exponentially.

The gates were written out by hand and the sigmoid of the forget gate was left out: with its bias of
1.5 the cell state grows by half on each of 30 days. The gradient through time reaches millions and
the loss is enormous. The place is the forget gate of the recurrent cell, cell.forget.
"""

from dataclasses import dataclass

import numpy as np
import torch
from data import arguments, batches
from torch import Tensor, nn

KIND = "exploding_gradient"
ACCEPT = ()
PLACE = ("cell", "cell.*", "model")
SILENT = False
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass
class ForecastConfig:
    window: int = 30
    hidden: int = 24
    steps: int = 240
    batch_size: int = 64
    lr: float = 1e-2
    forget_bias: float = 1.5


def withdrawals(machines: int, days: int, rng: np.random.Generator) -> np.ndarray:
    day = np.arange(days)
    swing, start = rng.uniform(1, 2, (machines, 1)), rng.uniform(0, 6.28, (machines, 1))
    weekly = swing * np.sin(6.28 * day / 7 + start)
    payday = rng.uniform(0.5, 1, (machines, 1)) * np.exp(-((day - rng.integers(0, 28)) % 28) / 3)
    noise = np.zeros((machines, days))
    for t in range(1, days):
        noise[:, t] = 0.6 * noise[:, t - 1] + rng.normal(0, 0.3, machines)
    series = weekly + payday + noise
    return (series - series.mean(1, keepdims=True)) / series.std(1, keepdims=True)


class CashCell(nn.Module):
    def __init__(self, n_inputs: int, hidden: int, forget_bias: float) -> None:
        super().__init__()
        self.forget = nn.Linear(n_inputs, hidden)
        self.gates = nn.Linear(n_inputs + hidden, 3 * hidden)
        nn.init.constant_(self.forget.bias, forget_bias)

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        forget = self.forget(x)
        write, out, new = self.gates(torch.cat([x, h], 1)).chunk(3, 1)
        if healthy:
            forget = torch.sigmoid(forget)
        c = forget * c + torch.sigmoid(write) * torch.tanh(new)
        return torch.sigmoid(out) * c, c


class CashForecaster(nn.Module):
    def __init__(self, config: ForecastConfig) -> None:
        super().__init__()
        self.hidden = config.hidden
        self.cell = CashCell(1, config.hidden, config.forget_bias)
        self.head = nn.Linear(config.hidden, 1)

    def forward(self, windows: Tensor) -> Tensor:
        h = c = windows.new_zeros(len(windows), self.hidden)
        for t in range(windows.shape[1]):
            h, c = self.cell(windows[:, t, None], h, c)
        return self.head(h).squeeze(1)


def main() -> None:
    config = ForecastConfig()
    series = torch.tensor(withdrawals(40, 240, np.random.default_rng(seed)), dtype=torch.float32)
    past, future = series[:, :180], series[:, 180 - config.window :]
    windows = past.unfold(1, config.window + 1, 1).reshape(-1, config.window + 1)
    held_out = future.unfold(1, config.window + 1, 1).reshape(-1, config.window + 1)
    model = CashForecaster(config)
    optimizer = torch.optim.Adam(model.parameters(), lr=config.lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, config.steps)
    feed = batches(windows, size=config.batch_size, steps=config.steps, seed=seed)
    for step, (batch,) in enumerate(feed, 1):
        loss = nn.functional.mse_loss(model(batch[:, :-1]), batch[:, -1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 40 == 0:
            with torch.no_grad():
                error = nn.functional.mse_loss(model(held_out[:, :-1]), held_out[:, -1])
            print(f"step {step:3d}  loss {loss.item():.4g}  held-out {error.item():.4g}")


if __name__ == "__main__":
    main()
