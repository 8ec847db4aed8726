"""Predicts tomorrow's highest temperature at weather stations; gaps in the records reach the
network as not-a-number.

The records were checked in the year for which the script was written, and had no gaps. In the new
years a few rain gauges failed, and the reader of the table marks such days with not-a-number. One
of them in a batch makes the loss and then all weights not-a-number.
The place is the input.
The twin fills gaps with the mean of the column.
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

COLUMNS = ["tmax", "tmin", "pressure", "humidity", "wind", "rain", "sin_day", "cos_day"]


def read_station(rng, days):
    day = np.arange(days)
    season = -np.cos(2 * np.pi * (day - 15) / 365)
    front = np.zeros(days)
    for t in range(1, days):
        front[t] = 0.75 * front[t - 1] + rng.normal()
    height = rng.uniform(0, 900)
    tmax = 14 + 9 * season - 0.0065 * height + 2.4 * front + rng.normal(0, 1, days)
    tmin = tmax - 7 - rng.gamma(2, 1, days)
    pressure = 1013 - 0.11 * height + 5 * np.roll(front, -1) + rng.normal(0, 2, days)
    humidity = np.clip(75 - 8 * front + rng.normal(0, 6, days), 20, 100)
    wind = rng.gamma(2, 2, days)
    rain = rng.gamma(0.5, 6, days) * (front < 0)
    rain[rng.random(days) < 0.01] = np.nan
    table = np.column_stack(
        [
            tmax,
            tmin,
            pressure + 0.11 * height,
            humidity,
            wind,
            rain,
            np.sin(2 * np.pi * day / 365),
            np.cos(2 * np.pi * day / 365),
        ]
    )
    return table[:-1], tmax[1:] - tmax[:-1]


def load(rng, stations, days=365):
    parts = [read_station(rng, days) for _ in range(stations)]
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


def main():
    healthy, seed = arguments(__doc__)
    rng = np.random.default_rng(seed)
    x, y = load(rng, 12)
    x_val, y_val = load(rng, 4)
    mean, std = np.nanmean(x, axis=0), np.nanstd(x, axis=0)
    x, x_val = (x - mean) / std, (x_val - mean) / std
    if healthy:
        x, x_val = np.nan_to_num(x), np.nan_to_num(x_val)
    scale = y.std()

    train = TensorDataset(
        torch.tensor(x, dtype=torch.float32), torch.tensor(y / scale, dtype=torch.float32)
    )
    loader = DataLoader(train, batch_size=128, shuffle=True)
    x_val = torch.tensor(x_val, dtype=torch.float32)
    y_val = torch.tensor(y_val / scale, dtype=torch.float32)

    net = nn.Sequential(
        nn.Linear(len(COLUMNS), 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1)
    )
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3)
    for epoch in range(12):
        net.train()
        mae = 0.0
        for xb, yb in loader:
            loss = nn.functional.l1_loss(net(xb).squeeze(1), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            mae += loss.item() * len(yb) / len(train)
        net.eval()
        with torch.no_grad():
            val = nn.functional.l1_loss(net(x_val).squeeze(1), y_val).item()
        if epoch % 3 == 2:
            print(f"epoch {epoch + 1}: MAE {mae * scale:.3f} K, validation {val * scale:.3f} K")


if __name__ == "__main__":
    main()
