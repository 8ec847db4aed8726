"""Three quantiles by the pinball loss, of a target whose noise grows with the input."""

import torch
from data import arguments, batches
from torch import nn

ODD = "an output of three columns for a target of one, a floor set by noise, rough gradients"

_, seed = arguments(__doc__)
x = torch.rand(2000, 1) * 4 - 2
y = torch.sin(2 * x) + torch.randn(2000, 1) * (0.1 + 0.2 * (x + 2))
quantiles = torch.tensor([0.1, 0.5, 0.9])
model = nn.Sequential(nn.Linear(1, 32), nn.SiLU(), nn.Linear(32, 32), nn.SiLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for rows, target in batches(x, y, size=64, steps=350, seed=seed):
    error = target - model(rows)
    loss = torch.maximum(quantiles * error, (quantiles - 1) * error).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    covered = (y < model(x)).float().mean(0)
print(f"loss {loss.item():.3f}, covered {[round(c.item(), 2) for c in covered]}")
