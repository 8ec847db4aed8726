"""Forecast of the power price as quantiles for four delivery blocks; the heads of the blocks are
kept in a plain list.

With one head all was well. For four of them the author put the layers into a list, as one does with
anything else in Python, and a module doesn't look into plain lists: their weights are not among the
parameters that the optimizer gets, nor in a saved file.
The place is the list of heads.
The twin uses a ModuleList.
"""

import torch
from data import arguments, batches
from torch import nn

KIND = "unregistered_parameters"
ACCEPT = ("parameters_not_in_optimizer",)
PLACE = ("heads", "heads.0", "heads.1", "heads.2", "heads.3", "optimizer")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
QUANTILES = torch.tensor([0.1, 0.5, 0.9])
BLOCKS = 4


def market(n):
    """Forecasts of wind, sun, load, gas and carbon price; prices of night, morning, noon, evening.

    The spread grows with the gas price, and wind presses prices most at night.
    """
    f = torch.randn(n, 5)
    wind, sun, load, gas, carbon = f.T
    level = 0.8 * gas + 0.3 * carbon
    mean = torch.stack(
        [
            level - 0.9 * wind.clamp(min=-1) - 0.6,
            level + 0.7 * load - 0.4 * wind,
            level + 0.2 * load - 0.9 * sun.relu() - 0.3 * wind,
            level + 1.1 * load.clamp(min=-0.5) - 0.4 * wind + 0.5,
        ],
        1,
    )
    price = mean + 0.25 * torch.exp(0.4 * gas).unsqueeze(1) * torch.randn(n, BLOCKS)
    return f, price


class QuantileNet(nn.Module):
    def __init__(self, inputs=5, width=24):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        heads = [nn.Linear(width, len(QUANTILES)) for _ in range(BLOCKS)]
        self.heads = nn.ModuleList(heads) if healthy else heads

    def forward(self, x):
        shared = self.trunk(x)
        return torch.stack([head(shared) for head in self.heads], dim=1)


def pinball(said, price):
    gap = price.unsqueeze(2) - said
    return torch.maximum(QUANTILES * gap, (QUANTILES - 1) * gap).mean()


x, price = market(2500)
x_val, price_val = market(800)
centre, scale = price.mean(0), price.std(0)
price, price_val = (price - centre) / scale, (price_val - centre) / scale

net = QuantileNet()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
for step, (features, target) in enumerate(batches(x, price, size=50, steps=900, seed=seed), 1):
    net.zero_grad()
    loss = pinball(net(features), target)
    loss.backward()
    optimizer.step()
    if step % 150 == 0:
        with torch.no_grad():
            said = net(x_val)
            inside = (price_val > said[..., 0]) & (price_val < said[..., 2])
            val = pinball(said, price_val).item()
        print(
            f"step {step}: loss {loss.item():.4f} val pinball {val:.4f} "
            f"inside the band {inside.float().mean():.2f}"
        )
