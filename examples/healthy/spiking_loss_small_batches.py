"""Batches of four rows with a heavy tail: single losses are ten times the usual."""

import torch
import torch.nn.functional as F
from data import arguments, batches
from torch import nn

ODD = "a very noisy loss, gradients with outliers"

_, seed = arguments(__doc__)
x = torch.randn(2000, 6)
noise = torch.distributions.StudentT(2.5).sample((2000,))
y = x @ torch.tensor([1.0, -2.0, 0.5, 0.0, 1.5, -1.0]) + (x[:, 0] * x[:, 1]) + 0.3 * noise
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for rows, target in batches(x, y, size=4, steps=500, seed=seed):
    loss = F.mse_loss(model(rows)[:, 0], target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    print(
        f"absolute error {(model(x)[:, 0] - y).abs().mean():.3f}, of the mean {y.abs().mean():.3f}"
    )
