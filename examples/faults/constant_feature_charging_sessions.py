"""How long an electric car stays at the charger; the battery's level at arrival is always 0.

The level comes from the charge points as a fraction from 0 to 1. All integer columns of the table
are cast on reading, and the level was put into their list when it used to be a percentage: each
fraction becomes 0. The network learns from what is left.
The place is the input. The twin reads the level as the fraction that it is.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "constant_feature"
ACCEPT = ()
PLACE = ("input*", "loader")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
COLUMNS = ("hour", "weekday", "level", "capacity", "power", "temperature")
INTEGERS = ("hour", "weekday") if healthy else ("hour", "weekday", "level")


def read_sessions(n):
    r = np.random.default_rng(seed)
    table = {
        "hour": r.integers(0, 24, n),
        "weekday": r.integers(0, 7, n),
        "level": r.beta(2, 3, n),
        "capacity": r.choice([37.0, 52.0, 64.0, 77.0], n),
        "power": r.choice([7.4, 11.0, 22.0], n),
        "temperature": r.normal(12, 8, n),
    }
    missing = (0.85 - table["level"]).clip(0.02) * table["capacity"]
    minutes = 60 * missing / table["power"] * (1 + 0.012 * (15 - table["temperature"]).clip(0))
    minutes = minutes * r.lognormal(0, 0.12, n) + 10 * (table["hour"] > 18)
    for name in INTEGERS:
        table[name] = table[name].astype(int)
    return table, np.log(minutes)


class Sessions(Dataset):
    def __init__(self, table, target, rows, mean, std):
        x = np.stack([table[c][rows] for c in COLUMNS], 1).astype(np.float32)
        self.x = torch.from_numpy((x - mean) / std)
        self.y = torch.from_numpy(target[rows].astype(np.float32))

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


table, target = read_sessions(3000)
order = np.random.default_rng(seed + 1).permutation(3000)
raw = np.stack([table[c][order[:2400]] for c in COLUMNS], 1).astype(np.float32)
mean, std = raw.mean(0), raw.std(0)
std[std == 0] = 1
target = (target - target[order[:2400]].mean()) / target[order[:2400]].std()
train = Sessions(table, target, order[:2400], mean, std)
val = Sessions(table, target, order[2400:], mean, std)

model = nn.Sequential(
    nn.Linear(6, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1), nn.Flatten(0)
)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(12):
    total = 0.0
    for x, y in DataLoader(train, batch_size=64, shuffle=True):
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(y)
    with torch.no_grad():
        val_loss = nn.functional.mse_loss(model(val.x), val.y).item()
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1}: train {total / len(train):.3f} val {val_loss:.3f}")
