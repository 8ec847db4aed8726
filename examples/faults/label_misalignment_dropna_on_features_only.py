"""Strength of concrete from its mix: rows with gaps are dropped from x, and y is cut to length.

The laboratory's table has gaps. The rows with gaps are removed from the features; the lengths then
differ, and `y[:len(x)]` "fixes" the error message. From the first gap on every mix has the
strength of another one. The place is the labels. The twin uses the same mask for both.
"""

import numpy as np
import torch
from data import arguments
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "label_misalignment"
ACCEPT = ()
PLACE = ("labels", "data")
SILENT = False
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


def laboratory(n, rng):
    cement, water = rng.uniform(150, 500, n), rng.uniform(130, 230, n)
    ash, sand = rng.uniform(0, 180, n), rng.uniform(600, 950, n)
    age = rng.choice([3, 7, 14, 28, 56, 90], n)
    strength = 24 * (cement + 0.4 * ash) / water * 0.55 + 8 * np.log(age) - 0.01 * (sand - 775)
    x = np.stack([cement, water, ash, sand, age], 1)
    x[rng.random(x.shape) < 0.015] = np.nan
    return x, strength + rng.normal(0, 2.0, n)


def clean(x, y):
    complete = ~np.isnan(x).any(axis=1)
    x = x[complete]
    y = y[complete] if healthy else y[: len(x)]
    return x, y


x, y = clean(*laboratory(1400, np.random.default_rng(seed)))
x, x_val, y, y_val = train_test_split(x, y, test_size=0.25, random_state=seed)
x_mean, x_std, y_mean, y_std = x.mean(0), x.std(0), y.mean(), y.std()
x, x_val = (torch.tensor((a - x_mean) / x_std, dtype=torch.float32) for a in (x, x_val))
y, y_val = (torch.tensor((a - y_mean) / y_std, dtype=torch.float32) for a in (y, y_val))
train = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)
val = DataLoader(TensorDataset(x_val, y_val), batch_size=400)

model = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(18):
    model.train()
    total = 0.0
    for xb, yb in train:
        loss = nn.functional.mse_loss(model(xb).squeeze(-1), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(train)
    model.eval()
    with torch.no_grad():
        for xb, yb in val:
            error = nn.functional.mse_loss(model(xb).squeeze(-1), yb)
    print(f"epoch {epoch:2d} loss {total:.3f} val mse {error:.3f} R2 {1 - error / y_val.var():.3f}")
