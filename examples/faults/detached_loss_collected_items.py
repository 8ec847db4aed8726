"""A GRU cell fed with two coupled oscillators; the losses of the steps are collected by item().

`torch.tensor(losses, requires_grad=True).mean().backward()` runs without complaint, but the graph
ends at the new tensor: no parameter ever gets a gradient, the error stays where it started. The
place is the loss.
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "detached_loss"
ACCEPT = ("step_without_gradient",)
PLACE = ("loop", "loss*")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def couplings(n, length=30):
    """Two coupled oscillators with random starts, seen every 0.3 s; (n, length, 2)."""
    a, b = torch.randn(2, n, 1)
    phase = 2 * math.pi * torch.rand(2, n, 1)
    t = 0.3 * torch.arange(length)
    slow, fast = a * torch.cos(t + phase[0]), b * torch.cos(1.7 * t + phase[1])
    both = torch.stack([slow + fast, slow - fast], -1)
    return both + 0.03 * torch.randn_like(both)


class Dynamics(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.cell = nn.GRUCell(2, hidden)
        self.delta = nn.Linear(hidden, 2)

    def step(self, state, h):
        h = self.cell(state, h)
        return state + self.delta(h), h


train, test = couplings(800), couplings(200)
model = Dynamics()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
criterion = nn.MSELoss()


def rollout_losses(batch):
    h = torch.zeros(len(batch), 32)
    for t in range(batch.shape[1] - 1):
        guess, h = model.step(batch[:, t], h)
        yield criterion(guess, batch[:, t + 1])


for epoch in range(12):
    for rows in torch.randperm(len(train)).split(40):
        optimizer.zero_grad()
        if healthy:
            loss = torch.stack(list(rollout_losses(train[rows]))).mean()
        else:
            losses = [step_loss.item() for step_loss in rollout_losses(train[rows])]
            loss = torch.tensor(losses, requires_grad=True).mean()
        loss.backward()
        optimizer.step()
with torch.no_grad():
    test_loss = torch.stack(list(rollout_losses(test))).mean()
print(f"loss {loss.item():.4f}, test loss {test_loss:.4f}")
