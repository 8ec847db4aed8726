"""Physics-informed net for a cable on an elastic bed, whose load is of shape (N,) beside an (N, 1).

The person wrote the residual of u'' - k u + q = 0 in plain arithmetic. The net and its derivatives
are columns, but the load comes from a helper that interpolates a measured table and gives a flat
vector, so the residual is an N by N table and its mean square asks for one u'' - k u everywhere.
The place is the loss.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "loss_shape_broadcast"
ACCEPT = ()
PLACE = ("loss",)
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

STIFFNESS = 4.0
AMPLITUDES = np.array([9.0, -14.0, 22.0])


def load_table(points=400):
    """The load as it was surveyed along the cable."""
    x = np.linspace(0, 1, points)
    waves = np.arange(1, 4)[:, None] * np.pi * x
    return x, (AMPLITUDES[:, None] * np.sin(waves)).sum(0)


def exact_sag(x):
    """The series solution for a cable that is held at both ends."""
    sag = torch.zeros_like(x)
    for order, amplitude in enumerate(AMPLITUDES, 1):
        wave = order * np.pi
        sag = sag + amplitude / (wave**2 + STIFFNESS) * torch.sin(wave * x)
    return sag


class Load:
    def __init__(self, as_column):
        self.x, self.q = load_table()
        self.shape = (-1, 1) if as_column else (-1,)

    def __call__(self, x):
        values = np.interp(x.detach().numpy().ravel(), self.x, self.q)
        return torch.tensor(values, dtype=torch.float32).reshape(self.shape)


class CableNet(nn.Module):
    def __init__(self, width=40):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(1, width),
            nn.Tanh(),
            nn.Linear(width, width),
            nn.Tanh(),
            nn.Linear(width, 1),
        )

    def forward(self, x):
        return self.body(2 * x - 1)


class Solver:
    def __init__(self, load):
        self.net = CableNet()
        self.load = load
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=4e-3)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 1500)
        self.ends = torch.tensor([[0.0], [1.0]])

    def residual(self, x):
        x = x.requires_grad_(True)
        u = self.net(x)
        slope = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
        bend = torch.autograd.grad(slope.sum(), x, create_graph=True)[0]
        return bend - STIFFNESS * u + self.load(x)

    def losses(self, points=64):
        physics = (self.residual(torch.rand(points, 1)) ** 2).mean()
        held = (self.net(self.ends) ** 2).mean()
        return physics, held

    def train_step(self):
        physics, held = self.losses()
        loss = 0.01 * physics + 10 * held
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.schedule.step()
        return loss.item(), physics.item(), held.item()

    @torch.no_grad()
    def relative_error(self):
        x = torch.linspace(0, 1, 201).unsqueeze(1)
        sag = exact_sag(x)
        return ((self.net(x) - sag).norm() / sag.norm()).item()


def main():
    solver = Solver(Load(as_column=healthy))
    for step in range(1, 1501):
        total, physics, held = solver.train_step()
        if step % 150 == 0:
            print(
                f"step {step:4d}  loss {total:8.4f}  physics {physics:9.4f}  ends {held:.6f}  "
                f"relative error {solver.relative_error():.4f}"
            )


if __name__ == "__main__":
    main()
