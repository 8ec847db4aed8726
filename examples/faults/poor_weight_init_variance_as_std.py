"""Heating load of buildings by a deep MLP: the initialiser was given He's variance, not its std.

The init helper was ported from a library whose `normal` takes the variance, to `nn.init.normal_`,
whose second number is the standard deviation. 2 / fan_in in place of its root makes every layer's
signal several times weaker than the one before; after eight layers only the bias is left and SGD
stands still. The place is the weights of the hidden layers. The twin takes the root.
"""

import itertools
import math

import numpy as np
import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "poor_weight_init"
ACCEPT = ("vanishing_gradient",)
PLACE = ("body*", "head*")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def simulate(n: int = 3000):
    r = np.random.default_rng(10 + seed)
    floor, glass = r.uniform(60, 320, n), r.uniform(0.05, 0.6, n)
    u_wall, storeys = r.gamma(4, 0.12, n), r.integers(1, 5, n)
    south, degree_days = r.uniform(-1, 1, n), r.normal(2900, 500, n)
    wall = 4 * np.sqrt(floor / storeys) * 2.7 * storeys
    loss = wall * ((1 - glass) * u_wall + glass * 1.4) + 0.25 * floor / storeys
    load = loss * degree_days * 0.024 - 45 * wall * glass * np.clip(south, 0, None)
    load = load / floor * (1 + 0.05 * r.normal(size=n))
    x = np.stack([floor, glass, u_wall, storeys, south, degree_days], 1)
    return (torch.tensor(a, dtype=torch.float32) for a in (x, load[:, None]))


class LoadNet(nn.Module):
    def __init__(self, inputs: int, width: int = 96, depth: int = 8):
        super().__init__()
        sizes = [inputs] + [width] * depth
        layers = []
        for a, b in itertools.pairwise(sizes):
            layers += [nn.Linear(a, b), nn.ReLU()]
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(width, 1)
        self.apply(self.initialise)

    @staticmethod
    def initialise(module):
        if isinstance(module, nn.Linear):
            variance = 2.0 / module.in_features
            nn.init.normal_(module.weight, 0.0, math.sqrt(variance) if healthy else variance)
            nn.init.zeros_(module.bias)

    def forward(self, x):
        return self.head(self.body(x))


x, y = simulate()
order = torch.randperm(len(x))
fit, held = order[:2250], order[2250:]
x_fit, x_held = standardise(x[fit], x[held])
y_fit, y_held = standardise(y[fit], y[held])

model = LoadNet(x.shape[1])
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
epochs = 25
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
loader = DataLoader(TensorDataset(x_fit, y_fit), batch_size=64, shuffle=True, drop_last=True)

for epoch in range(epochs):
    model.train()
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item()
    schedule.step()
    model.eval()
    with torch.no_grad():
        val = nn.functional.mse_loss(model(x_held), y_held).item()
    if epoch % 6 == 0 or epoch == epochs - 1:
        print(f"epoch {epoch}: train {total / len(loader):.4f}, validation {val:.4f}")
print(f"validation R2 {1 - val / y_held.var().item():.4f}")
