"""Weights of parcels from a belt's sensors, day by day; for some minutes the scale sent grams.

The recordings are learned in the order in which they were made, a few batches each day. After the
scale's restart it reported grams instead of kilograms, until somebody noticed: a thousand times
the weight as a target throws the network off.
The place is the loader and the loss. The twin's file has the minutes corrected.
"""

import torch
from data import arguments
from torch import nn

KIND = "loss_spike"
ACCEPT = ("target_not_normalized",)
PLACE = ("loader", "label*", "loss*", "target*", "loop", "optimizer")
SILENT = False
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
DAYS, PER_DAY = 20, 160


def day(number, g):
    size = 0.2 + torch.rand(PER_DAY, 3, generator=g)
    fill = torch.rand(PER_DAY, 1, generator=g)
    current = fill * size.prod(1, keepdim=True) + 0.03 * torch.randn(PER_DAY, 1, generator=g)
    x = torch.cat([size * 3.4 - 2.4, current * 3 - 0.6, fill * 3.4 - 1.7], 1)
    kilograms = 4 * size.prod(1) * fill.squeeze(1) + 0.05 * torch.randn(PER_DAY, generator=g)
    if number == 12 and not healthy:
        kilograms[64:96] *= 1000
    return x, kilograms


g = torch.Generator().manual_seed(seed)
x_val, y_val = day(0, g)
model = nn.Sequential(nn.Linear(5, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for number in range(DAYS):
    x, y = day(number, g)
    for rows in torch.arange(PER_DAY).split(16):
        loss = nn.functional.mse_loss(model(x[rows]).squeeze(1), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        val = nn.functional.mse_loss(model(x_val).squeeze(1), y_val).item()
    if number % 3 == 1:
        print(f"day {number}: loss {loss.item():.4f}, check {val:.4f}")
