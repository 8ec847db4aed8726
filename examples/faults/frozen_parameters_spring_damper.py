"""A physics-informed net is to find two constants of a spring, created with requires_grad=False.

They keep their first guesses while the curve bends between the data and the wrong physics: its
error is many times that of the noise, though the loss falls. The place is the parameters damping
and stiffness.
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "frozen_parameters"
ACCEPT = ()
PLACE = ("damping", "stiffness", "model")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

DAMPING, STIFFNESS, END = 0.5, 6.0, 4.0


def motion(time):
    pace = math.sqrt(STIFFNESS - DAMPING**2 / 4)
    return torch.exp(-DAMPING / 2 * time) * torch.cos(pace * time)


class Oscillator(nn.Module):
    """x(t) with x'' + damping x' + stiffness x = 0."""

    def __init__(self, width=32):
        super().__init__()
        self.curve = nn.Sequential(
            nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)
        )
        self.damping = nn.Parameter(torch.tensor(1.0), requires_grad=healthy)
        self.stiffness = nn.Parameter(torch.tensor(3.0), requires_grad=healthy)

    def forward(self, time):
        return self.curve(2 * time / END - 1)

    def residual(self, time):
        time = time.requires_grad_(True)
        place = self(time)
        speed = torch.autograd.grad(place.sum(), time, create_graph=True)[0]
        force = torch.autograd.grad(speed.sum(), time, create_graph=True)[0]
        return force + self.damping * speed + self.stiffness * place


time = torch.rand(160, 1) * END
place = motion(time) + 0.03 * torch.randn(160, 1)
measured = {"time": time[:110], "place": place[:110]}
held_out = {"time": time[110:], "place": place[110:]}

model = Oscillator()
physics = [model.damping, model.stiffness]
optimizer = torch.optim.Adam(
    [
        {"params": model.curve.parameters(), "lr": 5e-3},
        {"params": physics, "lr": 2e-2},
    ]
)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1200, eta_min=2e-4)
for step in range(1, 1201):
    model.train()
    rows = torch.randperm(110)[:55]
    fit = (model(measured["time"][rows]) - measured["place"][rows]).square().mean()
    law = model.residual(torch.rand(64, 1) * END).square().mean()
    loss = fit + 0.05 * law
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 100 == 0:
        model.eval()
        with torch.no_grad():
            val_loss = (model(held_out["time"]) - held_out["place"]).square().mean().item()
        print(
            f"{step:5d} fit {fit.item():.4f} law {law.item():.4f} val {val_loss:.4f} "
            f"damping {model.damping.item():.3f} stiffness {model.stiffness.item():.3f}"
        )
