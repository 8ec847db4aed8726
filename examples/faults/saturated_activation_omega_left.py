"""Groundwater head between wells by a coordinate network: SIREN's omega stayed when sine became
tanh.

The layer class multiplies by omega = 30 before the sine. For smoother fields the sine was exchanged
for a tanh and the factor was left: nearly all units sit at -1 or 1 from the first step, the
gradient is nearly nothing, and the field is a patchwork of steps. The place is the tanh layers. The
twin uses omega = 1 with tanh.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "saturated_activation"
ACCEPT = ("poor_weight_init", "vanishing_gradient")
PLACE = ("field.0", "field.1", "field.2", "field.3")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
OMEGA = 1.0 if healthy else 30.0


class Coordinate(nn.Module):
    def __init__(self, inputs: int, outputs: int, omega: float = OMEGA):
        super().__init__()
        self.linear, self.omega = nn.Linear(inputs, outputs), omega
        nn.init.xavier_normal_(self.linear.weight, gain=5 / 3)
        self.act = nn.Tanh()

    def forward(self, x):
        return self.act(self.omega * self.linear(x))


class Aquifer(nn.Module):
    def __init__(self, width: int = 64):
        super().__init__()
        self.field = nn.Sequential(
            Coordinate(2, width),
            Coordinate(width, width),
            Coordinate(width, width),
            Coordinate(width, width),
        )
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(self.field(x))


def wells(n: int):
    r = np.random.default_rng(60 + seed)
    place = r.uniform(-1, 1, (n, 2))
    pump = r.uniform(-0.8, 0.8, (4, 2))
    rate = np.array([0.5, 0.35, 0.6, -0.4])
    head = 1.2 * place[:, 0] - 0.5 * place[:, 1] ** 2 + 0.3 * np.sin(3 * place[:, 1] + place[:, 0])
    for where, q in zip(pump, rate, strict=False):
        head = head + q * np.log(((place - where) ** 2).sum(1) + 0.02)
    head = head + 0.05 * r.normal(size=n)
    return torch.tensor(place, dtype=torch.float32), torch.tensor(
        head[:, None], dtype=torch.float32
    )


place, head = wells(1600)
mean, std = head[:1200].mean(), head[:1200].std()
target = (head - mean) / std
model = Aquifer()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 800)


def draws(n: int, size: int, steps: int):
    rows = torch.randperm(n)
    at = 0
    for _ in range(steps):
        if at + size > n:
            rows, at = torch.randperm(n), 0
        yield rows[at : at + size]
        at += size


for step, rows in enumerate(draws(1200, 128, 800)):
    model.train()
    loss = nn.functional.mse_loss(model(place[rows]), target[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 160 == 159:
        model.eval()
        with torch.no_grad():
            rest = nn.functional.mse_loss(model(place[1200:]), target[1200:]).item()
        print(f"step {step + 1}: train {loss.item():.4f}, validation {rest:.4f}")
print(f"validation R2 {1 - rest / target[1200:].var().item():.4f}")
