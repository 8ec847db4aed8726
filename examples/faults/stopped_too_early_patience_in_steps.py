"""A physics-informed network for a damped oscillator: patience is counted in steps, not in checks.

`patience=20` was meant in checks of twenty steps each; the trainer's callback moved from the check
into the step, where it sees the noisy residual twenty times as often, and the first flat stretch
ends the run at a few dozen steps. The place is the loop (the stopping rule). The twin calls the
callback once a check.
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "stopped_too_early"
ACCEPT = ()
PLACE = ("loop",)
SILENT = False
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
DAMPING, STIFFNESS, END = 0.3, 9.0, 3.0


def exact(t):
    w = math.sqrt(STIFFNESS - DAMPING**2)
    return torch.exp(-DAMPING * t) * (torch.cos(w * t) + DAMPING / w * torch.sin(w * t))


class Displacement(nn.Module):
    """u(0) = 1 and u'(0) = 0 hold by construction."""

    def __init__(self, width: int = 48):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(1, width),
            nn.Tanh(),
            nn.Linear(width, width),
            nn.Tanh(),
            nn.Linear(width, width),
            nn.Tanh(),
            nn.Linear(width, 1),
        )

    def forward(self, t):
        return 1 + torch.tanh(t).square() * self.net(2 * t / END - 1)


def residual(model, t):
    t = t.requires_grad_(True)
    u = model(t)
    du = torch.autograd.grad(u.sum(), t, create_graph=True)[0]
    ddu = torch.autograd.grad(du.sum(), t, create_graph=True)[0]
    return (ddu + 2 * DAMPING * du + STIFFNESS * u) / STIFFNESS


class Patience:
    def __init__(self, patience: int):
        self.patience, self.best, self.waited = patience, math.inf, 0

    def exhausted(self, value: float) -> bool:
        if value < self.best * 0.999:
            self.best, self.waited = value, 0
        else:
            self.waited += 1
        return self.waited >= self.patience


class PinnTrainer:
    def __init__(self, steps: int = 1200, check_every: int = 20):
        self.model = Displacement()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=3e-3)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, steps)
        self.steps, self.check_every = steps, check_every
        self.patience = Patience(20)
        self.grid = torch.linspace(0, END, 400).unsqueeze(1)

    def error(self):
        self.model.eval()
        with torch.no_grad():
            truth = exact(self.grid)
            off = (self.model(self.grid) - truth).norm() / truth.norm()
        self.model.train()
        return off.item()

    def fit(self):
        self.model.train()
        for step in range(self.steps):
            points = torch.rand(128, 1) * END
            loss = residual(self.model, points).square().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.schedule.step()
            if step % 100 == 0:
                print(f"step {step}: residual {loss.item():.5f}, error {self.error():.4f}")
            checking = step % self.check_every == 0 or not healthy
            if checking and self.patience.exhausted(loss.item()):
                break
        print(f"{step + 1} steps; validation relative error {self.error():.4f}")


PinnTrainer().fit()
