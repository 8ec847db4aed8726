"""Fine-tunes a network for another building's climate; what was to be unfrozen stays frozen.

The network learned on one building. For the second one the backbone is frozen for the first two
epochs and then "unfrozen" by `backbone.requires_grad = True`, which sets an attribute on the module
and reaches no parameter (the method is requires_grad_).
The place is the backbone. The twin calls the method.
"""

import copy

import torch
from data import arguments
from torch import nn

KIND = "frozen_parameters"
ACCEPT = ("detached_graph",)
PLACE = ("backbone*", "backbone", "optimizer")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class ClimateNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(10, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh())
        self.head = nn.Linear(48, 1)

    def forward(self, x):
        return self.head(self.backbone(x)).squeeze(1)


def building(number, n, g):
    house = torch.Generator().manual_seed(number)
    w = torch.randn(10, 4, generator=house) / 2
    x = torch.randn(n, 10, generator=g)
    h = x @ w
    y = (1.5 * h[:, 0]).sin() + h[:, 1] * h[:, 2].tanh() + 0.5 * h[:, 3]
    return x, (y - y.mean()) / y.std() + 0.1 * torch.randn(n, generator=g)


def epoch(model, optimizer, x, y):
    total = 0.0
    for rows in torch.randperm(len(x)).split(32):
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    return total / len(x)


g = torch.Generator().manual_seed(seed)
x, y = building(1, 1600, g)
source = ClimateNet()
optimizer = torch.optim.Adam(source.parameters(), lr=3e-3)
for _ in range(6):
    loss = epoch(source, optimizer, x, y)
print(f"first building: loss {loss:.3f}")

x, y = building(2, 2000, g)
x_val, y_val, x, y = x[1600:], y[1600:], x[:1600], y[:1600]
model = copy.deepcopy(source)
model.backbone.requires_grad_(False)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for number in range(16):
    if number == 2:
        if healthy:
            model.backbone.requires_grad_(True)
        else:
            model.backbone.requires_grad = True
    loss = epoch(model, optimizer, x, y)
    with torch.no_grad():
        val = nn.functional.mse_loss(model(x_val), y_val).item()
    if number % 3 == 0:
        print(f"second building, epoch {number}: loss {loss:.3f} validation {val:.3f}")
