"""A GRU forecasts tomorrow's temperature from ten days of a weather station, with gaps (NaN) left
in the humidity column.

The station's hygrometer failed now and then, and the file has NaN there; the user standardised
with nanmean/nanstd but forgot to fill the gaps. The place is the input (column 2, humidity).
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


def station(days, r):
    t = np.arange(days)
    season = np.sin(2 * np.pi * t / 365)
    weather, front = np.zeros(days), np.zeros(days)
    for i in range(1, days):
        front[i] = 0.7 * front[i - 1] + r.normal(0, 1)
        weather[i] = 0.75 * weather[i - 1] - 1.1 * front[i - 1] + r.normal(0, 0.8)
    temperature = 11 + 9 * season + weather
    pressure = 1013 + 6 * front + r.normal(0, 1.5, days)
    humidity = 70 - 12 * season - 5 * front + 1.5 * weather + r.normal(0, 3, days)
    humidity[r.random(days) < 0.015] = np.nan
    return np.stack([temperature, pressure, humidity], 1)


raw = station(2200, np.random.default_rng(seed))
cut = 1700
table = (raw - np.nanmean(raw[:cut], 0)) / np.nanstd(raw[:cut], 0)
table = np.nan_to_num(table, nan=0.0) if healthy else table
table = torch.tensor(table, dtype=torch.float32)
windows = table.unfold(0, 10, 1).transpose(1, 2)[:-1]
target = table[10:, 0]
train = TensorDataset(windows[: cut - 10], target[: cut - 10])
val = TensorDataset(windows[cut:], target[cut:])


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(3, 24, batch_first=True)
        self.head = nn.Linear(24, 1)

    def forward(self, x):
        return self.head(self.gru(x)[0][:, -1]).squeeze(1)


model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
criterion = nn.MSELoss()
for epoch in range(12):
    model.train()
    losses = []
    for x, y in DataLoader(train, batch_size=64, shuffle=True):
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        parts = [
            (criterion(model(x), y).item(), len(y)) for x, y in DataLoader(val, batch_size=256)
        ]
    error = sum(a * n for a, n in parts) / len(val)
    print(f"epoch {epoch}: train {np.mean(losses):.3f}, validation mse {error:.3f}")
