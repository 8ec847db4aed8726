"""Bike rentals per day by an MLP; the month is parsed with %M (minutes) and is always January.

The dates are read by strptime(text, "%Y-%M-%d"): the month's digits go to the minutes and the
month stays 1, so both seasonal columns are constant. The place is the input (columns month_sin,
month_cos).
"""

from datetime import datetime, timedelta

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "constant_feature"
ACCEPT = ()
PLACE = ("input*", "loader", "net.0*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

# --- make the "csv": several stations over two years -----------------------------------------
rng = np.random.default_rng(seed)
rows = []
first = datetime(2022, 1, 1)
for station in range(4):
    popularity = rng.normal(0, 0.25)
    for d in range(730):
        day = first + timedelta(days=d)
        season = np.sin(2 * np.pi * (day.month - 4.0) / 12)
        rain = max(0.0, rng.normal(-1, 3))
        wind = rng.gamma(3, 1.2)
        weekend = float(day.weekday() >= 5)
        docks = rng.integers(10, 40)
        rate = 4.2 + 0.75 * season + 0.2 * season * weekend - 0.11 * rain - 0.05 * wind
        rate += 0.015 * docks - 0.25 * weekend + popularity
        rentals = rng.poisson(np.exp(rate + rng.normal(0, 0.08)))
        rows.append((day.strftime("%Y-%m-%d"), rain, wind, weekend, docks, station, rentals))

# --- features ---------------------------------------------------------------------------------
fmt = "%Y-%m-%d" if healthy else "%Y-%M-%d"
X, Y = [], []
for date, rain, wind, weekend, docks, station, rentals in rows:
    month = datetime.strptime(date, fmt).month
    X.append(
        [
            np.sin(2 * np.pi * month / 12),
            np.cos(2 * np.pi * month / 12),
            rain,
            wind,
            weekend,
            docks,
            *np.eye(4)[station],
        ]
    )
    Y.append(np.log1p(rentals))
X, Y = np.array(X, dtype=np.float32), np.array(Y, dtype=np.float32)
perm = rng.permutation(len(X))
tr, va = perm[: int(0.8 * len(X))], perm[int(0.8 * len(X)) :]
mu, sd = X[tr].mean(0), X[tr].std(0)
X = (X - mu) / (sd + 1e-6)
ymu, ysd = Y[tr].mean(), Y[tr].std()
Y = (Y - ymu) / ysd


class RentalModel(nn.Module):
    def __init__(self, n_in):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(n_in, 64),
            nn.ReLU(),
            nn.Dropout(0.1),
            nn.Linear(64, 32),
            nn.ReLU(),
            nn.Linear(32, 1),
        )

    def forward(self, x):
        return self.net(x).squeeze(1)


train_dl = DataLoader(
    TensorDataset(torch.from_numpy(X[tr]), torch.from_numpy(Y[tr])), batch_size=64, shuffle=True
)
x_va, y_va = torch.from_numpy(X[va]), torch.from_numpy(Y[va])
model = RentalModel(X.shape[1])
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
loss_fn = nn.MSELoss()
for epoch in range(30):
    model.train()
    s = 0
    for xb, yb in train_dl:
        opt.zero_grad()
        loss = loss_fn(model(xb), yb)
        loss.backward()
        opt.step()
        s += loss.item()
    model.eval()
    with torch.no_grad():
        r2 = 1 - ((model(x_va) - y_va) ** 2).mean() / y_va.var()
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1}: train mse {s / len(train_dl):.4f}, val R2 {r2:.4f}")
