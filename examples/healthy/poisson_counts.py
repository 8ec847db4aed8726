"""A Poisson regression: counts of 0 to 30 as targets, the loss may be of either sign."""

import torch
from data import arguments, batches
from torch import nn

ODD = "whole numbers as targets, a loss that becomes negative and stands still at its floor"

_, seed = arguments(__doc__)
x = torch.randn(2000, 5)
rate = torch.exp(1.2 + 0.5 * x[:, 0] - 0.4 * x[:, 1] + 0.3 * torch.tanh(x[:, 2] * x[:, 3]))
counts = torch.poisson(rate)
model = nn.Sequential(nn.Linear(5, 24), nn.ReLU(), nn.Linear(24, 1), nn.Flatten(0))
criterion = nn.PoissonNLLLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for rows, target in batches(x, counts, size=50, steps=400, seed=seed):
    optimizer.zero_grad()
    loss = criterion(model(rows), target)
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
