"""Strength of concrete from its recipe; `optimizer.step` stands there without its parentheses.

The line is correct Python, names the method and does not call it. The loss wavers with the
batches, and a search over learning rates finds that all are equally good.
The place is the loop and the optimizer. The twin calls it.
"""

import numpy as np
import torch
from data import arguments, standardise
from torch import nn, optim

KIND = "optimizer_never_steps"
ACCEPT = ("step_without_gradient",)
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def recipes(n=1000):
    r = np.random.default_rng(seed)
    cement, slag, ash = r.uniform(150, 500, n), r.uniform(0, 200, n), r.uniform(0, 150, n)
    water, plastic, age = r.uniform(140, 220, n), r.uniform(0, 15, n), r.choice([3, 7, 28, 90], n)
    gravel = r.uniform(850, 1100, n)
    binder = cement + 0.7 * slag + 0.4 * ash
    strength = 28 * binder / water * np.log1p(age) / 3.4 * (1 + 0.01 * plastic) - 20
    strength = strength + r.normal(0, 3, n)
    x = np.stack([cement, slag, ash, water, plastic, gravel, np.log(age)], 1)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(strength, dtype=torch.float32)


x, y = recipes()
x, x_val = standardise(x[:800], x[800:])
mean, std = y[:800].mean(), y[:800].std()
y, y_val = (y[:800] - mean) / std, y[800:]
net = nn.Sequential(nn.Linear(7, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = optim.RMSprop(net.parameters(), lr=1e-3)
loss_fn = nn.SmoothL1Loss()
for epoch in range(30):
    running = 0.0
    for rows in torch.randperm(800).split(40):
        optimizer.zero_grad()
        loss = loss_fn(net(x[rows]).flatten(), y[rows])
        loss.backward()
        if healthy:
            optimizer.step()
        else:
            optimizer.step  # noqa: B018
        running += loss.item()
    if epoch % 6 == 5:
        with torch.no_grad():
            error = (net(x_val).flatten() * std + mean - y_val).abs().mean()
        print(f"[{epoch + 1}/30] loss {running / 20:.4f} error {error:.2f} MPa")
