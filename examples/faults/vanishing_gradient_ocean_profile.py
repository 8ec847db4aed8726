"""Reckons the speed of sound in the sea from a depth profile with eight layers of sigmoids.

The layers follow an old textbook, in which neurons are sigmoids. Each passes at most a quarter of
the gradient, and after eight of them nothing arrives at the first. The place is the activations of
the body.
The twin uses GELU.
"""

import itertools

import torch
from data import arguments, batches, standardise
from torch import nn
from torch.optim import Adam

KIND = "vanishing_gradient"
ACCEPT = ("saturated_activation",)
PLACE = ("body", "body.0", "body.0.0", "body.1", "body.1.0", "body.2")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
LAYERS, WIDTH = 8, 40
Activation = nn.GELU if healthy else nn.Sigmoid


def profiles(n, g):
    """Temperature at twelve depths, salt, latitude; the mean speed and that of the channel."""
    depth = torch.linspace(0, 1, 12)
    surface = 14 + 7 * torch.randn(n, 1, generator=g)
    mixed = 0.1 + 0.3 * torch.rand(n, 1, generator=g)
    warm = 3 + (surface - 3) * torch.sigmoid((mixed - depth) * 18)
    warm = warm + 0.2 * torch.randn(n, 12, generator=g)
    salt = 35 + 0.7 * torch.randn(n, 1, generator=g)
    speed = 1449 + 4.6 * warm - 0.055 * warm**2 + (1.34 - 0.01 * warm) * (salt - 35) + 17 * depth
    target = torch.cat([speed.mean(1, keepdim=True), speed.min(1, keepdim=True).values], 1)
    return torch.cat([warm, salt, mixed], 1), target


class Profile(nn.Module):
    def __init__(self):
        super().__init__()
        sizes = [14] + [WIDTH] * LAYERS
        self.body = nn.Sequential(
            *[nn.Sequential(nn.Linear(a, b), Activation()) for a, b in itertools.pairwise(sizes)]
        )
        self.out = nn.Linear(WIDTH, 2)

    def forward(self, x):
        return self.out(self.body(x))


g = torch.Generator().manual_seed(200 + seed)
x, y = profiles(2400, g)
x, x_val = standardise(x[:2000], x[2000:])
y, y_val = standardise(y[:2000], y[2000:])
model = Profile()
optimizer = Adam(model.parameters(), lr=1e-3)
for step, (xb, yb) in enumerate(batches(x, y, size=64, steps=600, seed=seed), 1):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(xb), yb)
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        with torch.no_grad():
            val = nn.functional.mse_loss(model(x_val), y_val).item()
        print(f"{step:4d} loss {loss.item():.4f} validation {val:.4f}")
