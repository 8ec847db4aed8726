"""Estimates the concentration of a gas from an array of sensors; readings and reference values are
not of the same rows.

Rows where a sensor failed are thrown out of the table of readings. The list of reference values
had been taken from the table before and is just cut to the same length, so from the first missing
row on each reading stands beside the value of another minute.
The place is the preparation of the rows for the loader.
The twin throws the same rows out of both.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "label_misalignment"
ACCEPT = ("label_noise",)
PLACE = ("loader", "input*")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
rng = np.random.default_rng(seed)


def campaign(minutes):
    """Eight metal oxide sensors in a chamber; the gas is set anew each minute."""
    ppm = rng.gamma(2.0, 40.0, minutes)
    humidity = rng.uniform(20, 80, minutes)
    exponent = np.linspace(0.3, 0.7, 8)
    drift = 1 + 0.004 * (humidity[:, None] - 50) * np.linspace(-1, 1, 8)
    ohm = 100 * (1 + 0.05 * ppm[:, None]) ** -exponent * drift
    ohm *= np.exp(0.04 * rng.normal(size=(minutes, 8)))
    table = np.column_stack([np.log(ohm), humidity / 100])
    table[rng.random(minutes) < 0.05, rng.integers(0, 8)] = np.nan
    return table, ppm


def clean(table, ppm):
    complete = ~np.isnan(table).any(axis=1)
    readings = table[complete]
    reference = ppm[complete] if healthy else ppm[: len(readings)]
    return readings, np.log1p(reference)


class Minutes(Dataset):
    def __init__(self, readings, reference, stats):
        mean, std, y_mean, y_std = stats
        self.x = torch.tensor((readings - mean) / std, dtype=torch.float32)
        self.y = torch.tensor((reference - y_mean) / y_std, dtype=torch.float32)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


readings, reference = clean(*campaign(2400))
stats = readings.mean(0), readings.std(0), reference.mean(), reference.std()
train = Minutes(readings, reference, stats)
test_table, test_ppm = campaign(600)
whole = ~np.isnan(test_table).any(axis=1)
test = Minutes(test_table[whole], np.log1p(test_ppm[whole]), stats)

model = nn.Sequential(
    nn.Linear(9, 48), nn.ELU(), nn.Linear(48, 48), nn.ELU(), nn.Linear(48, 1), nn.Flatten(0)
)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
huber = nn.SmoothL1Loss()

for epoch in range(1, 16):
    seen = 0.0
    for x, y in DataLoader(train, batch_size=64, shuffle=True):
        optimizer.zero_grad()
        loss = huber(model(x), y)
        loss.backward()
        optimizer.step()
        seen += loss.item() * len(y)
    if epoch % 3 == 0:
        with torch.no_grad():
            r2 = 1 - (model(test.x) - test.y).pow(2).mean() / test.y.var()
        print(f"epoch {epoch:2d} | loss {seen / len(train):.4f} | test R2 {r2.item():+.3f}")
