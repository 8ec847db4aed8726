"""A network solves the equation of a damped oscillator from the equation alone, on the same points
in every step.

It looks odd: there are no measurements, no validation loader and no shuffling, each step sees the
identical full batch, and gradients are taken twice. It is sound: the points are a dense grid over
the whole interval, the loss is the residual of the equation, and the solution agrees with the
known one at points in between.
"""

import torch
from data import arguments
from torch import nn

ODD = (
    "A network solves the equation of a damped oscillator from the equation alone, on the "
    "same points in every step"
)
_, seed = arguments(__doc__)

DAMPING, STIFFNESS, END = 0.4, 4.0, 4.0
t = torch.linspace(0, END, 120).unsqueeze(1).requires_grad_(True)
between = torch.rand(300, 1) * END


def exact(t):
    decay = DAMPING / 2
    omega = (STIFFNESS - decay**2) ** 0.5
    return torch.exp(-decay * t) * (torch.cos(omega * t) + decay / omega * torch.sin(omega * t))


class Solution(nn.Module):
    """Starts at 1 with velocity 0 whatever the weights."""

    def __init__(self, width=32):
        super().__init__()
        self.first = nn.Linear(1, width)
        self.second = nn.Linear(width, width)
        self.last = nn.Linear(width, 1)

    def forward(self, t):
        h = torch.tanh(self.first(2 * t / END - 1))
        return 1 + t**2 * self.last(torch.tanh(self.second(h)))


def residual(model, t):
    x = model(t)
    (velocity,) = torch.autograd.grad(x.sum(), t, create_graph=True)
    (acceleration,) = torch.autograd.grad(velocity.sum(), t, create_graph=True)
    return acceleration + DAMPING * velocity + STIFFNESS * x


model = Solution()
STEPS = 1500
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=STEPS, pct_start=0.1)
for step in range(1, STEPS + 1):
    optimizer.zero_grad()
    loss = residual(model, t).square().mean()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 10.0)
    optimizer.step()
    scheduler.step()
    if step % 150 == 0:
        with torch.no_grad():
            error = (model(between) - exact(between)).square().mean().sqrt().item()
        print(
            f"step {step} residual {loss.item():.6f} error against the known solution {error:.5f}"
        )
