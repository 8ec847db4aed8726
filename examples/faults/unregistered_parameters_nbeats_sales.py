"""Forecasts sales by residual blocks that are kept in a plain Python list in the module.

As many blocks as the settings ask for are appended to self.blocks = []. They are no part of
model.parameters(), so the optimizer, state_dict and train() know only the two layers around them;
the loss falls a little all the same. The place is the list of blocks. The twin has a ModuleList.
"""

import argparse

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "unregistered_parameters"
ACCEPT = ("parameters_not_in_optimizer",)
PLACE = ("blocks", "blocks.*", "model", "optimizer")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

opt = argparse.Namespace(
    lookback=42, horizon=7, n_blocks=3, width=24, batch_size=64, learning_rate=4e-3, steps=800
)


def daily_sales(n_shops, n_days, rng):
    """Log sales: weekday habits, seasons, promotions every other week that fade, and chance."""
    t = np.arange(n_days)
    shops = []
    for _ in range(n_shops):
        weekday = rng.normal(0, 0.5, 7)[t % 7]
        season = rng.uniform(0.2, 0.6) * np.sin(2 * np.pi * t / 91 + rng.uniform(0, 6.28))
        promotion = rng.uniform(0.5, 1.2) * np.exp(-((t + rng.integers(14)) % 14) / 2.5)
        shops.append(weekday + season + promotion + rng.normal(0, 0.12, n_days))
    return torch.tensor(np.array(shops), dtype=torch.float32)


class Block(nn.Module):
    def __init__(self, size, width):
        super().__init__()
        self.hidden = nn.Sequential(
            nn.Linear(size, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.backcast = nn.Linear(width, size)
        self.forecast = nn.Linear(width, width)

    def forward(self, x):
        h = self.hidden(x)
        return x - self.backcast(h), self.forecast(h)


class ResidualForecaster(nn.Module):
    def __init__(self, lookback, horizon, n_blocks, width):
        super().__init__()
        self.scale = nn.Linear(lookback, lookback)
        self.blocks = nn.ModuleList() if healthy else []
        for _ in range(n_blocks):
            self.blocks.append(Block(lookback, width))
        self.output = nn.Linear(width, horizon)

    def forward(self, history):
        level = history.mean(1, keepdim=True)
        residual = self.scale(history - level)
        total = 0
        for block in self.blocks:
            residual, forecast = block(residual)
            total = total + forecast
        return level + self.output(total)


def windows(sales, first, last):
    """All windows whose forecast begins between the days `first` and `last`."""
    starts = range(first - opt.lookback, last - opt.lookback - opt.horizon)
    cut = torch.stack([sales[:, s : s + opt.lookback + opt.horizon] for s in starts], 1)
    return cut.flatten(0, 1).split([opt.lookback, opt.horizon], 1)


sales = daily_sales(24, 420, np.random.default_rng(110 + seed))
x_train, y_train = windows(sales, opt.lookback, 330)
x_test, y_test = windows(sales, 330, 420)
naive = (x_test[:, -14 : -14 + opt.horizon] - y_test).abs().mean().item()

model = ResidualForecaster(opt.lookback, opt.horizon, opt.n_blocks, opt.width)
optimizer = torch.optim.Adam(model.parameters(), lr=opt.learning_rate)
scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [500, 680], gamma=0.3)
criterion = nn.SmoothL1Loss(beta=0.5)
print(f"mean absolute error of repeating the days two weeks ago: {naive:.4f}")
running = None
for step in range(1, opt.steps + 1):
    model.train()
    idx = torch.randint(len(x_train), (opt.batch_size,))
    loss = criterion(model(x_train[idx]), y_train[idx])
    model.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    running = loss.item() if running is None else 0.98 * running + 0.02 * loss.item()
    if step % 80 == 0:
        model.eval()
        with torch.no_grad():
            mae = (model(x_test) - y_test).abs().mean().item()
        print(
            f"step {step:4d} train {running:.4f} test mae {mae:.4f} "
            f"lr {scheduler.get_last_lr()[0]:.1e}"
        )
