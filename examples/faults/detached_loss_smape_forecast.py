"""Weekly sales of shops with SMAPE as the loss, computed by the metric's function of NumPy.

The competition scores by SMAPE, so the function of the evaluation script became the loss. It works
on arrays; as backward() then complained, its number was wrapped in a tensor that requires a
gradient. The network never hears of it.
The place is the loss. The twin computes the same formula with PyTorch.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "detached_loss"
ACCEPT = ("step_without_gradient", "detached_graph")
PLACE = ("loss*", "loop")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
WINDOW = 12


def smape(truth, forecast):
    return np.mean(2 * np.abs(truth - forecast) / (np.abs(truth) + np.abs(forecast) + 1e-6))


def smape_loss(truth, forecast):
    gap = (truth - forecast).abs()
    return (2 * gap / (truth.abs() + forecast.abs() + 1e-6)).mean()


def sales(shops=60, weeks=120):
    r = np.random.default_rng(seed)
    week = np.arange(weeks)
    level = r.lognormal(0, 0.3, (shops, 1))
    season = 1 + 0.35 * np.sin(2 * np.pi * week / 26 + r.uniform(0, 6.28, (shops, 1)))
    series = level * season * r.lognormal(0, 0.05, (shops, weeks))
    windows = np.lib.stride_tricks.sliding_window_view(series, WINDOW + 1, axis=1)
    return torch.tensor(windows.copy(), dtype=torch.float32)


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(WINDOW, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
        self.out = nn.Linear(32, 1)

    def forward(self, x):
        return nn.functional.softplus(self.out(self.body(x))).squeeze(-1)


windows = sales()
train, val = windows[:, :80].reshape(-1, WINDOW + 1), windows[:, 92:].reshape(-1, WINDOW + 1)
model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(6):
    order = torch.randperm(len(train))
    losses = []
    for rows in order.split(64):
        x, y = train[rows, :WINDOW], train[rows, WINDOW]
        forecast = model(x)
        if healthy:
            loss = smape_loss(y, forecast)
        else:
            score = smape(y.numpy(), forecast.detach().numpy())
            loss = torch.tensor(score, requires_grad=True)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        score = smape(val[:, WINDOW].numpy(), model(val[:, :WINDOW]).numpy())
    print(f"epoch {epoch}: SMAPE {np.mean(losses):.4f}, later weeks {score:.4f}")
