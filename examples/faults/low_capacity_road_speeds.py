"""Learns the speed on a ring road by place and hour; the network has two hidden units a layer.

The sizes were set to the least for a first try on the laptop, "to see that it runs", and went into
the repository like that. The jams of the day come and go at five junctions, which two units
cannot draw. Training and validation errors stay high, side by side.
The place is the width of the hidden layers.
The twin has 64 units a layer.
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "low_capacity"
ACCEPT = ()
PLACE = ("trunk", "trunk.0", "trunk.2", "trunk.4", "output*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

g = torch.Generator().manual_seed(seed)
JAMS = [(0.1, 8.0, 35), (0.35, 17.5, 45), (0.5, 8.5, 40), (0.72, 12.5, 25), (0.9, 18.0, 40)]


def observe(n):
    place = torch.rand(n, generator=g)
    hour = 5 + 17 * torch.rand(n, generator=g)
    speed = torch.full((n,), 85.0)
    for where, when, depth in JAMS:
        apart = torch.minimum((place - where).abs(), 1 - (place - where).abs())
        speed = speed - depth * torch.exp(-((apart / 0.08) ** 2) - ((hour - when) / 1.8) ** 2)
    speed = speed + 2.5 * torch.randn(n, generator=g)
    angle = 2 * math.pi * place
    x = torch.stack([angle.sin(), angle.cos(), (2 * angle).sin(), (2 * angle).cos()], 1)
    x = torch.cat([x, (hour[:, None] - 13.5) / 4.9], 1)
    return x, (speed[:, None] - 78) / 12


class SpeedMap(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(5, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh()
        )
        self.output = nn.Linear(width, 1)

    def forward(self, x):
        return self.output(self.trunk(x))


x, y = observe(4000)
x_val, y_val = observe(1000)
model = SpeedMap(width=64 if healthy else 2)
optimizer = torch.optim.Adam(model.parameters(), lr=8e-3)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=8e-3, total_steps=1260)
for epoch in range(20):
    total = 0.0
    for rows in torch.randperm(len(x)).split(64):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
        schedule.step()
        total += loss.item() * len(rows)
    if epoch % 4 == 3:
        with torch.no_grad():
            error = nn.functional.mse_loss(model(x_val), y_val)
        off = 12 * error.sqrt().item()
        print(f"epoch {epoch + 1}: loss {total / len(x):.4f}, val {error:.4f} ({off:.1f} km/h)")
