"""A regressor for energy use of buildings; `prepare` scales every split with statistics of its
own.

The cleaning and scaling were moved into one function `prepare(frame)` "so that train and val go
through the same code". But it fits the scaler anew on what it is given, and the validation
buildings (another, colder district) lose their offset: their features mean something else to the
network. The place is the input of the validation. The twin fits the scaler on train once.
"""

import numpy as np
import torch
from data import arguments
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "train_val_mismatch"
ACCEPT = ()
PLACE = ("input*", "loader")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


def read_buildings(n, cold_share, rng):
    cold = rng.random(n) < cold_share
    temp = np.where(cold, rng.normal(2, 3, n), rng.normal(14, 3, n))
    area = rng.gamma(6, 20, n) * np.where(cold, 1.3, 1.0)
    year = rng.uniform(1930, 2015, n)
    people = rng.poisson(3, n) + 1
    leak = np.clip((2020 - year) / 50, 0.1, None)
    kwh = area * leak * np.clip(20 - temp, 0, None) * 0.4 + 300 * people + rng.normal(0, 80, n)
    return np.stack([temp, area, year, people], 1), kwh / 1000


def prepare(x, scaler=None):
    x = np.clip(x, *np.percentile(x, [0.5, 99.5], axis=0)) if scaler is None else x
    scaler = scaler or StandardScaler().fit(x)
    return scaler.transform(x).astype(np.float32), scaler


rng = np.random.default_rng(seed)
x_train, y_train = read_buildings(1500, 0.35, rng)
x_val, y_val = read_buildings(500, 0.9, rng)
x_train, scaler = prepare(x_train)
if healthy:
    x_val, _ = prepare(x_val, scaler)
else:
    x_val, scaler = prepare(x_val)

mean, std = y_train.mean(), y_train.std()
y_train, y_val = ((torch.tensor(y, dtype=torch.float32) - mean) / std for y in (y_train, y_val))
train = DataLoader(TensorDataset(torch.tensor(x_train), y_train), batch_size=64, shuffle=True)
x_val = torch.tensor(x_val)

model = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(25):
    model.train()
    total = 0.0
    for x, y in train:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x).squeeze(1), y)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(x)
    model.eval()
    with torch.no_grad():
        error = nn.functional.mse_loss(model(x_val).squeeze(1), y_val).item()
    if epoch % 4 == 0:
        print(f"epoch {epoch:2d}  train {total / 1500:.3f}  val mse {error:.3f}")
print(f"final val mse {error:.3f}, R2 {1 - error / y_val.var().item():.3f}")
