"""The parity of four signs: nothing is learned for a while, then all of it."""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = "a loss at guessing for a long time, before it falls"

_, seed = arguments(__doc__)
model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(500):
    x = torch.randint(0, 2, (128, 8)).float() * 2 - 1
    y = (x[:, :4].prod(1) > 0).float()
    loss = F.binary_cross_entropy_with_logits(model(x)[:, 0], y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
