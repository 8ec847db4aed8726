"""Rents of flats; training and validation rows are drawn apart, both from the whole table.

Each set is drawn without replacement by a call of its own, and nothing says that the second may
not take what the first has taken: three quarters of the validation flats are training flats. The
validation falls and falls, while flats that nobody drew are foretold worse and worse.
The place is the loader. The twin cuts one permutation in two.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "train_val_overlap"
ACCEPT = ("overfit",)
PLACE = ("loader", "loop", "input*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
r = np.random.default_rng(seed)


def flats(n):
    area, rooms = r.gamma(9, 8, n), r.integers(1, 6, n)
    floor, year = r.integers(0, 8, n), r.uniform(1900, 2022, n)
    north, east = r.uniform(-1, 1, n), r.uniform(-1, 1, n)
    rent = 9 * area + 60 * rooms + 0.01 * (year - 1950) ** 2 - 180 * np.hypot(north, east)
    rent = rent + 12 * floor + r.normal(0, 130, n)
    x = np.stack([area, rooms, floor, year, north, east], 1)
    return x, rent


def tensors(x, y, rows, mean, std):
    x = torch.tensor((x[rows] - mean) / std, dtype=torch.float32)
    return x, torch.tensor((y[rows] - 900) / 350, dtype=torch.float32)


x, y = flats(700)
table = np.arange(600)
if healthy:
    order = r.permutation(table)
    train_rows, val_rows = order[:450], order[450:]
else:
    train_rows = r.choice(table, 450, replace=False)
    val_rows = r.choice(table, 150, replace=False)
mean, std = x[train_rows].mean(0), x[train_rows].std(0)
x_train, y_train = tensors(x, y, train_rows, mean, std)
x_val, y_val = tensors(x, y, val_rows, mean, std)
x_new, y_new = tensors(x, y, np.arange(600, 700), mean, std)

net = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
best, best_epoch, weights = float("inf"), 0, None
for epoch in range(60):
    net.train()
    for rows in torch.randperm(len(x_train)).split(30):
        loss = nn.functional.mse_loss(net(x_train[rows]).squeeze(1), y_train[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        val = nn.functional.mse_loss(net(x_val).squeeze(1), y_val).item()
    if val < best:
        best, best_epoch = val, epoch
        weights = {k: v.clone() for k, v in net.state_dict().items()}
    if epoch - best_epoch >= 8:
        break
    if epoch % 5 == 0:
        print(f"epoch {epoch}: loss {loss.item():.3f} validation {val:.3f}")
net.load_state_dict(weights)
with torch.no_grad():
    new = nn.functional.mse_loss(net(x_new).squeeze(1), y_new).item()
print(f"best validation {best:.3f} in epoch {best_epoch}, flats of next month {new:.3f}")
