"""A network gives mean and spread of a machine's temperature and is trained by Gaussian likelihood.

Nothing is wrong; there is no place to name.
"""

import torch
from data import arguments
from torch import nn

ODD = (
    "The loss falls below zero and goes on: a density may be greater than 1, so its negative log "
    "is negative."
)

_, seed = arguments(__doc__)


def readings(n):
    load = torch.rand(n, 2) * 2 - 1
    mean = torch.sin(3 * load[:, 0]) + 0.5 * load[:, 1] ** 2
    spread = 0.03 + 0.06 * (load[:, 1] > 0)
    return load / 0.577, (mean + spread * torch.randn(n)) / 0.8


x, y = readings(3000)
x_val, y_val = readings(600)
body = nn.Sequential(nn.Linear(2, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 2))
optimizer = torch.optim.Adam(body.parameters(), lr=4e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)


def nll(x, y):
    mean, raw = body(x).unbind(1)
    variance = nn.functional.softplus(raw) + 1e-4
    return nn.functional.gaussian_nll_loss(mean, y, variance)


for epoch in range(20):
    for rows in torch.randperm(3000).split(120):
        loss = nll(x[rows], y[rows])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(body.parameters(), 5.0)
        optimizer.step()
    scheduler.step()
    with torch.no_grad():
        print(f"epoch {epoch}: nll {loss.item():.3f} val {nll(x_val, y_val).item():.3f}")
