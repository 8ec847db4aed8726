"""A normalising flow of measured chemical concentrations, whose loss falls below zero.

It looks odd because the loss is negative from early on. The loss is the negative log of a
density, not of a probability: where the data are narrow the density is above 1 and its log
positive. Validation follows training.
"""

import math

import torch
from data import arguments
from torch import nn

ODD = "a loss that falls below zero early on: the negative log of a density"
_, seed = arguments(__doc__)


def mixtures(n, g):
    """Four concentrations in narrow, curved relation to one another."""
    z = torch.randn(n, 4, generator=g)
    a = 0.5 * z[:, 0]
    b = 0.15 * z[:, 1] + a**2
    c = 0.1 * z[:, 2] + 0.4 * torch.sin(3 * a)
    return torch.stack([a, b, c, 0.12 * z[:, 3] - 0.5 * b], 1)


class Coupling(nn.Module):
    def __init__(self, mask, width=48):
        super().__init__()
        self.register_buffer("mask", mask)
        self.net = nn.Sequential(
            nn.Linear(4, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 8)
        )

    def forward(self, x):
        scale, shift = self.net(x * self.mask).chunk(2, 1)
        scale = 2 * torch.tanh(scale / 2) * (1 - self.mask)
        return x * scale.exp() + shift * (1 - self.mask), scale.sum(1)


class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        masks = torch.tensor(
            [[1.0, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 1], [0, 1, 1, 0]]
        )
        self.couplings = nn.ModuleList(Coupling(mask) for mask in masks)

    def log_density(self, x):
        volume = 0.0
        for coupling in self.couplings:
            x, grown = coupling(x)
            volume = volume + grown
        return volume - 0.5 * (x.square() + math.log(2 * math.pi)).sum(1)


g = torch.Generator().manual_seed(seed)
train, val = mixtures(4000, g), mixtures(1000, g)
flow = Flow()
optimizer = torch.optim.Adam(flow.parameters(), lr=1e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 12)
for epoch in range(12):
    flow.train()
    for rows in torch.randperm(len(train), generator=g).split(80):
        loss = -flow.log_density(train[rows]).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
        optimizer.step()
    schedule.step()
    flow.eval()
    with torch.no_grad():
        print(
            f"epoch {epoch} loss {loss.item():.4f} "
            f"val nll {-flow.log_density(val).mean().item():.4f}"
        )
