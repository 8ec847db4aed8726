"""Minutes that a picking order takes in a warehouse; some rows carry a share of zero by zero.

The table of orders gets a derived column, the share of the stock on the shelf that the order takes
away. For orders of articles that are delivered straight from the dock both numbers are 0, and 0/0
gives NaN without a word. Such rows are few, but the first batch that has one ruins the weights.
The place is the input: the derived column.
The twin sets the share to 0 where there is no stock.
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
rng = np.random.default_rng(seed)

# %% orders of the last quarter
n = 2400
lines = rng.integers(1, 15, n)
metres = rng.gamma(3.0, 40.0, n)
weight = rng.lognormal(1.5, 0.6, n)
stock = rng.integers(5, 60, n).astype(float)
taken = np.floor(stock * rng.beta(2, 4, n))
dock = rng.random(n) < 0.02
stock[dock] = 0.0
taken[dock] = 0.0
upper_level = rng.integers(0, 2, n)

# %% derived columns
with np.errstate(invalid="ignore"):
    share = taken / stock
if healthy:
    share = np.where(stock > 0, share, 0.0)
crowd = 0.5 + 0.5 * np.sin(rng.uniform(0, 6.28, n))

real_share = np.where(stock > 0, taken / np.maximum(stock, 1), 0)
minutes = (
    1.5
    + 0.6 * lines
    + metres / 55
    + 0.15 * weight * upper_level
    + 3 * real_share**2
    + 1.2 * crowd * lines / 5
    + rng.normal(0, 0.5, n)
)

# %% tensors
columns = np.stack([lines, metres, weight, share, upper_level, crowd], 1)
train = np.arange(n) < 1800
mean, std = np.nanmean(columns[train], 0), np.nanstd(columns[train], 0)
x = torch.tensor((columns - mean) / std, dtype=torch.float32)
y = torch.tensor((minutes - minutes[train].mean()) / minutes[train].std(), dtype=torch.float32)
train = torch.from_numpy(train)
loader = DataLoader(TensorDataset(x[train], y[train]), batch_size=48, shuffle=True)

# %% network
net = nn.Sequential(nn.Linear(6, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1))
adam = torch.optim.Adam(net.parameters(), lr=2e-3)
mse = nn.MSELoss()

for epoch in range(15):
    net.train()
    total = 0.0
    for xb, yb in loader:
        adam.zero_grad()
        loss = mse(net(xb).squeeze(1), yb)
        loss.backward()
        adam.step()
        total += loss.item() * len(xb)
    net.eval()
    with torch.no_grad():
        off = (net(x[~train]).squeeze(1) - y[~train]).abs().mean() * minutes[train.numpy()].std()
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1:2d}  mse {total / 1800:.4f}  validation off by {off:.2f} minutes")
