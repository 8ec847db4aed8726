"""The index of a hand-made batch loop is never used: x[:64] where x[i : i + 64] was meant.

The place is the loader (here: the slicing). The training loss falls (silent). Exact: the inputs of
the steps are equal.
"""

import torch
import torch.nn.functional as F
from data import arguments, houses
from torch import nn

KIND = "repeated_batch"
ACCEPT = ()
PLACE = ("loader", "input*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = houses(seed)
model = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

for epoch in range(8):
    for i in range(0, len(x) - 64, 64):
        start = i if healthy else 0
        features, price = x[start : start + 64], y[start : start + 64]
        loss = F.mse_loss(model(features)[:, 0], price)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
with torch.no_grad():
    error = F.mse_loss(model(x_val)[:, 0], y_val)
print(f"loss {loss.item():.3f}, squared error {error:.3f}")
