"""Fraud in 4 % of the rows, weighted, and found."""

import torch
import torch.nn.functional as F
from data import arguments, batches
from torch import nn

ODD = "batches with one or no row of the rare class"

_, seed = arguments(__doc__)
y = (torch.rand(4000) < 0.04).float()
x = torch.randn(4000, 10)
x[:, :3] += 2.5 * y[:, None]
model = nn.Sequential(nn.Linear(10, 24), nn.ReLU(), nn.Linear(24, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
weight = torch.tensor(5.0)
for rows, fraud in batches(x, y, size=64, steps=280, seed=seed):
    loss = F.binary_cross_entropy_with_logits(model(rows)[:, 0], fraud, pos_weight=weight)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
found = model(x)[:, 0] > 0
print(f"loss {loss.item():.3f}, found {found[y == 1].float().mean():.2f}")
