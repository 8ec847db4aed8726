"""A GRU forecasts tomorrow's river level from eighteen days of rain, temperature and level. Gaps of
the sensors are filled with the last value before them.

A few records begin with a gap, where there is no value before, so a few windows keep their NaN. The
first batch with such a window makes the loss NaN and every weight after it. The place is the input:
the leading gaps need a backward fill too.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "nan_input"
ACCEPT = ()
PLACE = ("input",)
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def rivers(n, days, r):
    """Rain, temperature, level of n stations with sensor gaps as NaN: (n, days, 3)."""
    rain = r.gamma(0.4, 4.0, (n, days))
    temperature = (
        10 + 8 * np.sin(np.arange(days) / 20 + r.uniform(0, 6, (n, 1))) + r.normal(0, 1, (n, days))
    )
    level = np.zeros((n, days))
    level[:, 0] = 3
    for t in range(1, days):
        dry = 0.004 * np.clip(temperature[:, t], 0, None)
        level[:, t] = (
            0.9 * level[:, t - 1] + 0.12 * rain[:, t - 1] + 0.2 - dry + r.normal(0, 0.03, n)
        )
    record = np.stack([rain, temperature, level], 2)
    gap = r.random((n, days, 3)) < 0.01
    gap[:, 1:] |= gap[:, :-1]
    gap[:, 0] |= r.random((n, 3)) < 0.08  # switched on late
    return np.where(gap, np.nan, record)


def fill_forward(a):
    a = a.copy()
    for t in range(1, a.shape[1]):
        missing = np.isnan(a[:, t])
        a[:, t][missing] = a[:, t - 1][missing]
    return a


def fill(a):
    a = fill_forward(a)
    if healthy:
        a = fill_forward(a[:, ::-1])[:, ::-1]
    return a


def windows(a, length=18):
    cut = [a[:, i : i + length + 1] for i in range(0, a.shape[1] - length, 3)]
    w = torch.tensor(np.concatenate(cut), dtype=torch.float32)
    return w[:, :-1], w[:, -1, 2]


class Forecaster(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.gru = nn.GRU(3, width, batch_first=True)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(self.gru(x)[0][:, -1]).squeeze(1)


r = np.random.default_rng(seed)
stations = fill(rivers(44, 160, r))
mean, std = np.nanmean(stations[:34], (0, 1)), np.nanstd(stations[:34], (0, 1))
stations = (stations - mean) / std
train = DataLoader(
    TensorDataset(*windows(stations[:34])), batch_size=64, shuffle=True, drop_last=True
)
x_val, y_val = windows(stations[34:])

model = Forecaster()
optimizer = torch.optim.RMSprop(model.parameters(), lr=2e-3)
schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.85)
huber = nn.HuberLoss()
for epoch in range(10):
    total = 0.0
    for x, y in train:
        loss = huber(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(train)
    schedule.step()
    with torch.no_grad():
        val = huber(model(x_val), y_val).item()
    print(f"epoch {epoch} train {total:.4f} val {val:.4f}")
