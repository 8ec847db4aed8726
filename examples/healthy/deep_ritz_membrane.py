"""Finds the shape of a loaded membrane by minimising its energy over random points (Deep Ritz)."""

import torch
from data import arguments
from torch import nn

ODD = (
    "there are no targets, the loss is an energy below zero that stays noisy because each step has "
    "new random points, and the net's own output is cut to zero at the rim by a factor"
)
_, seed = arguments(__doc__)
torch.set_num_threads(1)


class Membrane(nn.Module):
    def __init__(self, width: int = 32):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)
        )

    def forward(self, place):
        rim = (place * (1 - place)).prod(1, keepdim=True)
        return 16 * rim * self.net(2 * place - 1)


def load(place):
    x, y = place.unbind(1)
    pi = torch.pi
    return (
        5 * pi**2 * (pi * x).sin() * (2 * pi * y).sin()
        + 2 * pi**2 * (pi * x).sin() * (pi * y).sin()
    )


def exact(place):
    x, y = place.unbind(1)
    return (torch.pi * x).sin() * ((2 * torch.pi * y).sin() + (torch.pi * y).sin())


def energy(model, place):
    place = place.requires_grad_()
    height = model(place)
    (slope,) = torch.autograd.grad(height.sum(), place, create_graph=True)
    return (0.5 * slope.square().sum(1) - load(place) * height.squeeze(1)).mean()


model = Membrane()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=1500)
grid = torch.cartesian_prod(*2 * [torch.linspace(0, 1, 41)])
truth = exact(grid)
mean_energy = 0.0
for step in range(1500):
    optimizer.zero_grad()
    loss = energy(model, torch.rand(256, 2))
    loss.backward()
    optimizer.step()
    schedule.step()
    mean_energy += loss.item() / 300
    if step % 300 == 299:
        with torch.no_grad():
            error = (model(grid).squeeze(1) - truth).norm() / truth.norm()
        print(f"step {step + 1}: mean energy {mean_energy:.3f}, relative error {error:.4f}")
        mean_energy = 0.0

least = -7 * torch.pi**2 / 8
print(f"relative error {error:.4f}; the energy of the exact shape is {least:.3f}")
