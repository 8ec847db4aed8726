"""Features of a power demand series with a rolling mean and standard deviation as of pandas: the
first rows, for which the window is not full, are NaN, and `dropna()` was forgotten.

As the rows are shuffled the loss is NaN after some batches, and all weights from then on. The
place is the input.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "nan_input"
ACCEPT = ()
PLACE = ("input*", "loader")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
HOURS, WINDOW = 2000, 48


def demand(n, rng):
    t = np.arange(n)
    daily = np.sin(2 * np.pi * t / 24) + 0.4 * np.sin(4 * np.pi * t / 24 + 1)
    slow = np.zeros(n)
    for i in range(1, n):
        slow[i] = 0.97 * slow[i - 1] + 0.15 * rng.normal()
    return 50 + 8 * daily + 6 * slow + rng.normal(0, 1.0, n)


def rolling(series, window):
    """Mean and standard deviation of the last `window` values, NaN where there are fewer."""
    views = np.lib.stride_tricks.sliding_window_view(series, window)
    out = np.full((len(series), 2), np.nan)
    out[window - 1 :, 0], out[window - 1 :, 1] = views.mean(1), views.std(1)
    return out


def shift(series, k):
    return np.concatenate([np.full(k, series[0]), series[:-k]])


rng = np.random.default_rng(seed + 5)
load = demand(HOURS, rng)
hour = np.arange(HOURS) % 24
table = np.column_stack(
    [
        load,
        *(shift(load, k) for k in (1, 2, 23)),
        rolling(load, WINDOW),
        np.sin(2 * np.pi * hour / 24),
        np.cos(2 * np.pi * hour / 24),
    ]
)[:-1]
target = load[1:]
if healthy:
    keep = ~np.isnan(table).any(1)
    table, target = table[keep], target[keep]

split = 1500
mean, std = np.nanmean(table[:split], 0), np.nanstd(table[:split], 0)
X = torch.tensor((table - mean) / std, dtype=torch.float32)
y = torch.tensor((target - target[:split].mean()) / target[:split].std(), dtype=torch.float32)

model = nn.Sequential(nn.Linear(8, 48), nn.SiLU(), nn.Linear(48, 24), nn.SiLU(), nn.Linear(24, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
huber = nn.SmoothL1Loss()
loader = DataLoader(TensorDataset(X[:split], y[:split]), batch_size=32, shuffle=True)
for epoch in range(14):
    total = 0.0
    for xb, yb in loader:
        loss = huber(model(xb).squeeze(-1), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(xb)
    with torch.no_grad():
        out = model(X[split:]).squeeze(-1)
        val = huber(out, y[split:])
    print(f"epoch {epoch + 1} train {total / split:.4f} val {val:.4f}")
mae = (out - y[split:]).abs().mean() * target[:split].std()
print(f"mean absolute error {mae:.2f} MW")
