"""Fits the temperature along a rod over time for any heat source, with tanh units of adjustable
slope; the slope is so steep that nearly all units sit at their ends.

A paper multiplies the slope of each layer by a fixed number, and starts the adjustable part at the
inverse of that number, so that the product begins at one. The student took over the number and left
the adjustable part at one.
The place is the activations after the hidden layers.
The twin starts with a product of one.
"""

import itertools
import math

import torch
from data import arguments, batches
from torch import nn

KIND = "saturated_activation"
ACCEPT = ("vanishing_gradient", "exploding_gradient")
PLACE = ("hidden", "act", "act.0", "act.1", "act.2", "hidden.0", "hidden.1", "hidden.2")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


class AdaptiveTanh(nn.Module):
    def __init__(self, scale=20.0, start=1.0):
        super().__init__()
        self.scale = scale
        self.slope = nn.Parameter(torch.tensor(start))

    def forward(self, z):
        return torch.tanh(self.scale * self.slope * z)


class RodField(nn.Module):
    def __init__(self, inputs=5, width=40, depth=3):
        super().__init__()
        sizes = [inputs] + [width] * depth
        start = 1 / 20 if healthy else 1.0
        self.hidden = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(sizes))
        self.act = nn.ModuleList(AdaptiveTanh(start=start) for _ in range(depth))
        self.out = nn.Linear(width, 1)

    def forward(self, z):
        for layer, act in zip(self.hidden, self.act, strict=False):
            z = act(layer(z))
        return self.out(z).squeeze(-1)


def rods(n):
    """Place, time and the strength of three modes at the start; each mode decays by itself."""
    place, time = torch.rand(n), torch.rand(n)
    modes = torch.randn(n, 3)
    order = torch.arange(1, 4)
    decay = torch.exp(-0.25 * order**2 * time.view(-1, 1))
    heat = (modes * decay * torch.sin(math.pi * order * place.view(-1, 1))).sum(1)
    inputs = torch.cat([(place * 2 - 1).view(-1, 1), (time * 2 - 1).view(-1, 1), modes], 1)
    return inputs, heat


x, heat = rods(4000)
x_val, heat_val = rods(1000)
field = RodField()
optimizer = torch.optim.Adam(field.parameters(), lr=3e-3)
for step, (inputs, target) in enumerate(batches(x, heat, size=100, steps=1200, seed=seed), 1):
    loss = nn.functional.mse_loss(field(inputs), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 200 == 0:
        with torch.no_grad():
            val = nn.functional.mse_loss(field(x_val), heat_val)
        print(f"step {step:4d}  mse {loss.item():.5f}  val mse {val.item():.5f}")
