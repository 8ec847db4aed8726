"""A network predicts the distribution of transit times of parcels by their log density; its loss
is below zero, and sound.

The times are in units of ten days, so that the densities are above one and their negative
logarithm below zero. The loss falls to a floor below zero, the same in validation: that is no
flipped sign. There is no scheduler and no clipping.
"""

import math

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = (
    "A network predicts the distribution of transit times of parcels by their log density; "
    "its loss is below zero, and sound"
)
_, seed = arguments(__doc__)

r = np.random.default_rng(860 + seed)
n = 5000
km = r.gamma(2.0, 300.0, n)
hubs = 1 + r.poisson(km / 400)
weight = r.lognormal(1.0, 0.8, n)
express = r.random(n) < 0.3
weekend = r.random(n) < 2 / 7
mean_days = 0.6 + km / 700 + 0.35 * hubs + 0.5 * weekend
mean_days = mean_days * np.where(express, 0.55, 1.0)
days = mean_days * np.exp(r.normal(0, 1, n) * (0.10 + 0.03 * hubs))
x = np.column_stack([np.log(km), hubs, np.log(weight), express, weekend])
cut = 4000
x = (x - x[:cut].mean(0)) / x[:cut].std(0)
x = torch.tensor(x, dtype=torch.float32)
y = torch.tensor(days / 10, dtype=torch.float32)


class TransitTimes(nn.Module):
    """Mean and log spread of the logarithm of the transit time."""

    def __init__(self, inputs, width=48):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(inputs, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU()
        )
        self.location = nn.Linear(width, 1)
        self.log_spread = nn.Linear(width, 1)
        nn.init.constant_(self.location.bias, float(y[:cut].log().mean()))

    def forward(self, x):
        h = self.body(x)
        return self.location(h).squeeze(1), self.log_spread(h).squeeze(1).clamp(-4, 2)


def negative_log_density(location, log_spread, times):
    z = (times.log() - location) / log_spread.exp()
    return (0.5 * z**2 + log_spread + times.log() + 0.5 * math.log(2 * math.pi)).mean()


model = TransitTimes(x.shape[1])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-3)
loader = DataLoader(TensorDataset(x[:cut], y[:cut]), batch_size=50, shuffle=True)
for epoch in range(15):
    model.train()
    total = 0.0
    for features, times in loader:
        loss = negative_log_density(*model(features), times)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(loader)
    model.eval()
    with torch.no_grad():
        location, log_spread = model(x[cut:])
        val = negative_log_density(location, log_spread, y[cut:]).item()
        error = (location.exp() - y[cut:]).abs().mean().item() * 10
    print(f"epoch {epoch:2d} train {total:.4f} val {val:.4f} mean error {error:.3f} days")
