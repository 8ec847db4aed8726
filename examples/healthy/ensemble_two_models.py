"""Two networks are trained in one loop, each with an optimizer of its own."""

import torch
import torch.nn.functional as F
from data import arguments, batches, houses
from torch import nn

ODD = "two forward and backward passes in a step, two optimizers on the same data"

_, seed = arguments(__doc__)
x, y, x_val, y_val = houses(seed)
models = [
    nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1)),
    nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 1)),
]
optimizers = [torch.optim.Adam(model.parameters(), lr=5e-3) for model in models]
for rows, price in batches(x, y, size=64, steps=200, seed=seed):
    for model, optimizer in zip(models, optimizers, strict=True):
        loss = F.huber_loss(model(rows)[:, 0], price)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
with torch.no_grad():
    both = sum(model(x_val)[:, 0] for model in models) / 2
print(f"loss {loss.item():.3f}, squared error {F.mse_loss(both, y_val):.3f}")
