"""Forecast of a furnace's temperature by an LSTM; gaps of the sensors are NaN and such batches are
skipped.

The logger writes NaN when a sensor drops out. The author saw a NaN loss, found in a forum that
one should `continue` when the loss isn't finite, and so throws away nearly every batch, since one
row in a batch suffices. The gaps should be filled (by the last value). The place is the input and
the loop.
"""

import math

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "nan_input"
ACCEPT = ()
PLACE = ("input*", "loader", "loop")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

WINDOW, HORIZON = 30, 3
rng = np.random.default_rng(seed + 3)


def furnace(n):
    """Burner level (stepwise), outer temperature (slow), gas pressure; the furnace answers late."""
    burner = np.repeat(rng.uniform(0, 1, n // 12 + 1), 12)[:n]
    outer = np.sin(np.arange(n) / 70) + 0.1 * rng.normal(size=n)
    gas = 1 + 0.2 * np.sin(np.arange(n) / 11) + 0.05 * rng.normal(size=n)
    temp = np.zeros(n)
    for t in range(1, n):
        power = burner[max(t - 4, 0)] * gas[t]
        temp[t] = (
            temp[t - 1] + 0.16 * (2.2 * power - temp[t - 1] + 0.4 * outer[t]) + 0.03 * rng.normal()
        )
    return np.stack([burner, outer, gas, temp], 1)


table = furnace(5200)
split = 4200
target = table[:, 3].copy()
mean, std = table[:split].mean(0), table[:split].std(0)
table = (table - mean) / std
target = (target - mean[3]) / std[3]

# drop-outs of the gas and outer sensors: short gaps, the last part was logged by repaired sensors
for column in (1, 2):
    for start in rng.choice(split - 10, 5, replace=False):
        table[start : start + rng.integers(1, 4), column] = np.nan


def forward_fill(values):
    out = values.copy()
    for c in range(out.shape[1]):
        for t in range(1, len(out)):
            if math.isnan(out[t, c]):
                out[t, c] = out[t - 1, c] if not math.isnan(out[t - 1, c]) else 0.0
    return np.nan_to_num(out)


if healthy:
    table = forward_fill(table)


class Windows(Dataset):
    def __init__(self, begin, end):
        self.begin, self.length = begin, end - begin - WINDOW - HORIZON

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        t = self.begin + i
        x = torch.tensor(table[t : t + WINDOW], dtype=torch.float32)
        y = torch.tensor(target[t + WINDOW + HORIZON - 1], dtype=torch.float32)
        return x, y


class Forecaster(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.lstm = nn.LSTM(4, hidden, batch_first=True)
        self.fc = nn.Linear(hidden, 1)

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.fc(out[:, -1]).squeeze(-1)


train_loader = DataLoader(Windows(0, split), batch_size=32, shuffle=True, drop_last=True)
val_loader = DataLoader(Windows(split, len(table)), batch_size=256)
model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
mse = nn.MSELoss()

for epoch in range(5):
    model.train()
    losses = []
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = mse(model(x), y)
        if not torch.isfinite(loss):
            continue
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        errors = torch.cat([(model(x) - y) ** 2 for x, y in val_loader])
    shown = np.mean(losses) if losses else float("nan")
    print(f"epoch {epoch}: train mse {shown:.4f}  val mse {errors.mean():.4f}")
