"""Foretells tomorrow's orders of web shops; a shop without a visit has the conversion rate 0 / 0.

Among the inputs is the rate of orders to visits. Small shops have days without any visit, NumPy
gives NaN with a warning that nobody reads among the others, and the first batch with such a day
turns all weights into NaN.
The place is the input. The twin says 0 where there was no visit.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "nan_input"
ACCEPT = ()
PLACE = ("input*", "loader", "0")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def shop_days(n=3000):
    r = np.random.default_rng(seed)
    size = r.lognormal(3.2, 0.8, n)
    appeal = r.beta(3, 30, n)
    visits = r.poisson(size * r.lognormal(0, 0.3, n)).astype(float)
    visits[r.random(n) < 0.01] = 0
    orders = r.binomial(visits.astype(int), appeal).astype(float)
    price, weekday = r.lognormal(3, 0.5, n), r.integers(0, 7, n)
    with np.errstate(all="ignore"):
        rate = orders / visits
    if healthy:
        rate = np.where(visits > 0, rate, 0.0)
    x = np.stack([np.log1p(visits), np.log1p(size), 10 * rate, np.log(price), weekday >= 5], 1)
    tomorrow = np.log1p(size * appeal) + 0.2 * (weekday >= 5) + r.normal(0, 0.1, n)
    mean, std = np.nanmean(x, 0), np.nanstd(x, 0)
    x = torch.tensor((x - mean) / std, dtype=torch.float32)
    y = torch.tensor((tomorrow - tomorrow.mean()) / tomorrow.std(), dtype=torch.float32)
    return x, y


x, y = shop_days()
train = DataLoader(TensorDataset(x[:2400], y[:2400]), batch_size=24, shuffle=True)
x_val, y_val = x[2400:], y[2400:]
known = ~x_val.isnan().any(1)
model = nn.Sequential(nn.Linear(5, 32), nn.SiLU(), nn.Linear(32, 32), nn.SiLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(6):
    total = 0.0
    for xb, yb in train:
        loss = nn.functional.mse_loss(model(xb).squeeze(1), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    with torch.no_grad():
        val = nn.functional.mse_loss(model(x_val[known]).squeeze(1), y_val[known]).item()
    print(f"epoch {epoch}: {total / len(train):.3f}, validation {val:.3f}")
