"""A physics-informed network follows a dye down a river, but its physics term teaches nothing.

The person took the derivatives with torch.autograd.grad and left create_graph at its default. What
comes back has no graph, so the residual of the transport equation is a number without gradient
and only the measured points count. The place is the loss, its physics term.
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "detached_loss"
ACCEPT = ("detached_graph",)
PLACE = ("loss",)
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

SPEED = 0.8


def concentration(x, t):
    """The dye as it was at the start, carried along."""
    origin = x - SPEED * t
    return torch.exp(-20 * (origin + 0.4) ** 2) + 0.5 * torch.sin(3 * origin)


class Plume(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, width), nn.Linear(width, width)])
        self.out = nn.Linear(width, 1)

    def forward(self, x, t):
        h = torch.cat([x * 2, t * 2 - 1], 1)
        for layer in self.layers:
            h = torch.tanh(layer(h))
        return self.out(h)


class TracerStudy:
    def __init__(self):
        generator = torch.Generator().manual_seed(seed)
        self.generator = generator
        self.x0 = torch.rand(160, 1, generator=generator) * 2 - 1
        self.c0 = concentration(self.x0, torch.zeros_like(self.x0))
        self.t_inlet = torch.rand(80, 1, generator=generator)
        self.c_inlet = concentration(-torch.ones(80, 1), self.t_inlet)
        self.c0 = self.c0 + 0.01 * torch.randn(160, 1, generator=generator)
        self.model = Plume()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=4e-3)

    def points(self, n):
        x = torch.rand(n, 1, generator=self.generator) * 2 - 1
        t = torch.rand(n, 1, generator=self.generator)
        return x.requires_grad_(), t.requires_grad_()

    def derivatives(self, x, t):
        c = self.model(x, t)
        return torch.autograd.grad(c.sum(), (x, t), create_graph=healthy)

    def physics_loss(self):
        x, t = self.points(256)
        c_x, c_t = self.derivatives(x, t)
        return ((c_t + SPEED * c_x) ** 2).mean()

    def data_loss(self):
        start = self.model(self.x0, torch.zeros_like(self.x0)) - self.c0
        inlet = self.model(-torch.ones_like(self.t_inlet), self.t_inlet) - self.c_inlet
        return (start**2).mean() + (inlet**2).mean()

    def step(self):
        data, physics = self.data_loss(), self.physics_loss()
        loss = 10 * data + physics
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return data.item(), physics.item()

    @torch.no_grad()
    def relative_error(self):
        x, t = torch.meshgrid(torch.linspace(-1, 1, 60), torch.linspace(0, 1, 40), indexing="ij")
        x, t = x.reshape(-1, 1), t.reshape(-1, 1)
        truth = concentration(x, t)
        return math.sqrt(((self.model(x, t) - truth) ** 2).mean() / (truth**2).mean())


study = TracerStudy()
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(study.optimizer, 1000, eta_min=1e-4)
for it in range(1, 1001):
    data, physics = study.step()
    schedule.step()
    if it % 100 == 0:
        print(
            f"it {it:5d} data {data:.2e} physics {physics:.2e} "
            f"relative error {study.relative_error():.3f}"
        )
