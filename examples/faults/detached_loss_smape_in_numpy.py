"""Daily demand of shops: the loss is the SMAPE of the competition, computed by its NumPy function.

from_numpy() returns a tensor without a graph. There is no complaint about it, because an L1 penalty
of the weights is added, which has one: backward() runs, and the only thing that is minimised is the
penalty. The place is the loss. The twin computes SMAPE by torch.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "detached_loss"
ACCEPT = ("detached_graph",)
PLACE = ("loss*", "loop")
SILENT = True
EXACT = True
EARLY = True

HISTORY, AHEAD = 28, 7


def smape(forecast, actual):
    """As the organisers published it (without their factor of 100)."""
    return np.mean(2 * np.abs(forecast - actual) / (np.abs(forecast) + np.abs(actual) + 1e-6))


def smape_torch(forecast, actual):
    return (2 * (forecast - actual).abs() / (forecast.abs() + actual.abs() + 1e-6)).mean()


def demand(rng, shops=60, days=260):
    day = np.arange(days)
    level = rng.lognormal(0.0, 0.25, (shops, 1))
    week = 1 + 0.45 * np.sin(2 * np.pi * (day + rng.integers(0, 7, (shops, 1))) / 7)
    trend = 1 + 0.3 * np.sin(2 * np.pi * day / 180 + rng.uniform(0, 6, (shops, 1)))
    return level * week * trend * rng.lognormal(0, 0.08, (shops, days))


def windows(series):
    x, y = [], []
    for start in range(0, series.shape[1] - HISTORY - AHEAD + 1, 3):
        x.append(series[:, start : start + HISTORY])
        y.append(series[:, start + HISTORY : start + HISTORY + AHEAD])
    return [torch.tensor(np.concatenate(part), dtype=torch.float32) for part in (x, y)]


class Forecaster(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.encode = nn.Linear(HISTORY, width)
        self.hidden = nn.Linear(width, width)
        self.decode = nn.Linear(width, AHEAD)

    def forward(self, x):
        level = x.mean(1, keepdim=True)
        h = torch.relu(self.encode(x / level - 1))
        h = torch.relu(self.hidden(h))
        return nn.functional.softplus(self.decode(h) + 0.54) * level


healthy, seed = arguments(__doc__)
series = demand(np.random.default_rng(seed))
x, y = windows(series[:, :200])
x_test, y_test = windows(series[:, 200:])
model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(8):
    for rows in torch.randperm(len(x)).split(64):
        optimizer.zero_grad()
        forecast = model(x[rows])
        if healthy:
            error = smape_torch(forecast, y[rows])
        else:
            error = smape(forecast.detach().numpy(), y[rows].numpy())
            error = torch.from_numpy(np.asarray(error))
        penalty = sum(p.abs().sum() for name, p in model.named_parameters() if "weight" in name)
        loss = error + 1e-4 * penalty
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        test = smape(model(x_test).numpy(), y_test.numpy())
    print(f"epoch {epoch}: loss {loss.item():.4f}, smape of the last weeks {test:.4f}")
