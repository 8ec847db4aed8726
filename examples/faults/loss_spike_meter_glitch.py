"""Power use of a town, learnt from a stream: now and then a meter sends rubbish, and it is learnt.

The meters send watts for a few minutes after a restart and kilowatts otherwise, so a few
readings are a thousand times too large. Nothing looks at the readings before they are used, and
each such batch throws the network far away from where it was.
The place is the input (or the loader, the loop). The twin leaves impossible readings out.
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "loss_spike"
ACCEPT = ("exploding_gradient", "label_noise", "input_not_normalized", "target_not_normalized")
PLACE = ("input*", "loader", "loop", "loss*")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


def load_curve(t, temperature):
    day = torch.sin(2 * math.pi * t) + 0.5 * torch.sin(4 * math.pi * t + 1)
    return 0.8 * day - 0.5 * temperature + 0.1 * temperature**2


def readings(n):
    t, temperature = torch.rand(n), torch.randn(n)
    load = load_curve(t, temperature) + 0.1 * torch.randn(n)
    angle = 2 * math.pi * t
    return torch.stack([angle.sin(), angle.cos(), temperature], 1), load


def stream(steps, size=32):
    for step in range(steps):
        x, load = readings(size)
        if step in (230, 410, 560):
            load[:3] = 1000 * (load[:3] + 2).abs()
        yield x, load


def plausible(load):
    return load.abs() < 50


model = nn.Sequential(nn.Linear(3, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
x_val, y_val = readings(1000)

for step, (x, load) in enumerate(stream(600), 1):
    if healthy:
        keep = plausible(load)
        x, load = x[keep], load[keep]  # noqa: PLW2901
    loss = nn.functional.mse_loss(model(x).squeeze(1), load)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 60 == 0:
        with torch.no_grad():
            val = nn.functional.mse_loss(model(x_val).squeeze(1), y_val)
        print(f"{step} readings batches, loss {loss.item():.4f}, validation {val.item():.4f}")
