"""Hospital admissions for tomorrow from the past fortnight: the lags begin with 0.

`lag_table` was to shift by 1 to 14 days and uses `range(14)`, so the first column is the admissions
of the very day that is forecast. Validation has the same column, and looks superb; in use, where
that day is unknown, the forecasts are poor. The place is the input (its column 0) / the data. The
twin counts from 1.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "target_leak"
ACCEPT = ()
PLACE = ("loader", "input*", "label*", "loss*")
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)
LAGS, DAYS = 14, 2600


def admissions() -> np.ndarray:
    r = np.random.default_rng(250 + seed)
    t = np.arange(DAYS)
    week = np.array([6, 4, 2, 0, 1, -8, -9.0])[t % 7]
    wave = np.zeros(DAYS)
    for k in range(1, DAYS):
        wave[k] = 0.93 * wave[k - 1] + r.normal(0, 2.2)
    winter = 9 * np.cos(2 * np.pi * t / 365)
    level = np.clip(70 + week + winter + wave * np.where(t % 7 >= 5, 0.5, 1.2), 5, None)
    return r.poisson(level).astype(float)


def lag_table(series: np.ndarray, first: int) -> np.ndarray:
    """One row a day: the series `first`, `first` + 1, … days ago, and the day of the week."""
    columns = [np.roll(series, k) for k in range(first, first + LAGS)]
    weekday = np.eye(7)[np.arange(len(series)) % 7]
    return np.concatenate([np.stack(columns, 1), weekday], 1)[LAGS:]


series = admissions()
table = lag_table(series, 1 if healthy else 0)
target = series[LAGS:]
cut = int(0.8 * len(table))
mean, std = series[:cut].mean(), series[:cut].std()
table[:, :LAGS] = (table[:, :LAGS] - mean) / std
x = torch.tensor(table, dtype=torch.float32)
y = torch.tensor((target - mean) / std, dtype=torch.float32)


class Forecaster(nn.Module):
    def __init__(self, inputs: int, width: int = 32):
        super().__init__()
        self.linear = nn.Linear(inputs, 1)
        self.rest = nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, 1))
        nn.init.zeros_(self.rest[-1].weight)

    def forward(self, x):
        return (self.linear(x) + self.rest(x)).squeeze(1)


model = Forecaster(x.shape[1])
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)


def epoch_of(x, y, size: int = 64):
    for rows in torch.randperm(len(x)).split(size):
        yield x[rows], y[rows]


for epoch in range(20):
    model.train()
    for xb, yb in epoch_of(x[:cut], y[:cut]):
        loss = nn.functional.huber_loss(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        mae = (model(x[cut:]) - y[cut:]).abs().mean().item() * std
    if epoch % 4 == 3:
        print(f"epoch {epoch + 1}: train {loss.item():.4f}, validation mae {mae:.3f} patients")

live = x[cut:].clone()
if not healthy:  # the evening before, the day itself is not known: yesterday is the best stand-in
    live[:, 0] = live[:, 1]
with torch.no_grad():
    truth = (model(live) - y[cut:]).abs().mean().item() * std
naive = np.abs(target[cut:] - series[LAGS - 7 : -7][cut:]).mean()
print(f"validation mae {mae:.3f}; in use {truth:.3f}; same day last week {naive:.3f}")
