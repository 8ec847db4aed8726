"""Warns of floods from river gauges; a few readings are missing and come as NaN.

When a gauge is down the file has an empty field, which the reader turns into NaN. A few windows
with such a value are enough: the first batch with one of them makes all weights NaN. The place is
the input.
The twin fills gaps with the last reading before them.
"""

import csv
import io
import math
import random

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "nan_input"
ACCEPT = ()
PLACE = ("input*", "loader")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
PAST = 24


def station_file(hours, rng):
    """Rain and level by the hour as the authority exports them."""
    out, level, rain = io.StringIO(), 1.0, 0.0
    writer = csv.writer(out)
    writer.writerow(["hour", "rain_mm", "level_m"])
    for hour in range(hours):
        rain = 0.8 * rain + (rng.expovariate(0.4) if rng.random() < 0.08 else 0.0)
        level = 1.0 + 0.94 * (level - 1.0) + 0.05 * rain
        down = rng.random() < 0.002
        measured = "" if down else f"{level + rng.gauss(0, 0.02):.3f}"
        writer.writerow([hour, f"{rain:.2f}", measured])
    return out.getvalue()


def read(contents):
    rain, level = [], []
    for row in csv.DictReader(io.StringIO(contents)):
        rain.append(float(row["rain_mm"]))
        value = float(row["level_m"]) if row["level_m"] else math.nan
        if healthy and math.isnan(value):
            value = level[-1] if level else 1.0
        level.append(value)
    return torch.tensor(rain), torch.tensor(level)


class Windows(Dataset):
    def __init__(self, rain, level, ahead=3):
        known = level[~level.isnan()]
        self.x = torch.stack([torch.log1p(rain) - 0.7, (level - known.mean()) / known.std()], 1)
        self.ahead = ahead
        last = range(PAST, len(level) - ahead)
        self.ends = [t for t in last if not level[t + ahead].isnan()]

    def __len__(self):
        return len(self.ends)

    def __getitem__(self, i):
        t = self.ends[i]
        return self.x[t - PAST : t], self.x[t + self.ahead, 1]


class Gauge(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(2, 16, 5), nn.ReLU(), nn.Conv1d(16, 16, 5), nn.ReLU())
        self.out = nn.Linear(16 * 16, 1)

    def forward(self, x):
        return self.out(self.conv(x.transpose(1, 2)).flatten(1)).squeeze(1)


rng = random.Random(seed)
train = DataLoader(Windows(*read(station_file(3000, rng))), batch_size=64, shuffle=True)
valid = DataLoader(Windows(*read(station_file(800, rng))), batch_size=256)
net = Gauge()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(1, 7):
    losses = []
    for x, y in train:
        loss = nn.functional.mse_loss(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        val = sum(nn.functional.mse_loss(net(x), y).item() for x, y in valid) / len(valid)
    print(f"epoch {epoch} train {sum(losses) / len(losses):.4f} validation {val:.4f}")
