"""Linear regression of a yearly course: demand by the day of the year and the temperature's lag.

The course goes up and down, and a plane does not: nine tenths of the variance stay. The place is
the model.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "low_capacity"
ACCEPT = ("no_nonlinearity",)
PLACE = ("*line*", "")
SILENT = True
EXACT = False
EARLY = True


class Demand(nn.Module):
    def __init__(self, units):
        super().__init__()
        if units:
            self.curve = nn.Sequential(nn.Linear(2, units), nn.ReLU(), nn.Linear(units, 1))
        else:
            self.line = nn.Linear(2, 1)

    def forward(self, x):
        return self.curve(x) if hasattr(self, "curve") else self.line(x)


healthy, seed = arguments(__doc__)
generator = torch.Generator().manual_seed(seed)
day = 2 * torch.rand(800, generator=generator) - 1
lag = torch.randn(800, generator=generator)
demand = torch.sin(1.5 * torch.pi * day) + 0.2 * lag + 0.1 * torch.randn(800, generator=generator)
x, y = torch.stack([day, lag], 1), (demand / demand.std())[:, None]
model = Demand(48 if healthy else 0)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
for _ in range(40):
    for rows in torch.randperm(len(x)).split(50):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
print(f"mean squared error {F.mse_loss(model(x), y).item():.3f} of a variance of 1")
