"""Conductivity of a rod from a few temperatures, by LBFGS through a finite-difference solver.

A small network gives the conductivity along the rod; the solver is differentiable. LBFGS with a
strong Wolfe search sees the same full data in every evaluation, calls the closure some dozens of
times per step and has a rate of 1; that is how it must be. Sensors between those fitted validate.
"""

import math

import torch
from data import arguments
from torch import nn

ODD = "LBFGS: the same full batch in every evaluation, many backwards a step, rate 1.0, no schedule"

_, seed = arguments(__doc__)
CELLS, STEPS, DT = 40, 60, 0.004
centre = (torch.arange(CELLS) + 0.5) / CELLS
faces = torch.arange(1, CELLS) / CELLS


def solve(conductivity, start):
    """Implicit Euler for u_t = (k u_x)_x with insulated ends; k at the inner faces."""
    k = conductivity * CELLS**2 * DT
    main = 1 + nn.functional.pad(k, (0, 1)) + nn.functional.pad(k, (1, 0))
    matrix = torch.diag(main) - torch.diag(k, 1) - torch.diag(k, -1)
    factor, pivots = torch.linalg.lu_factor(matrix)
    u, course = start, []
    for _ in range(STEPS):
        u = torch.linalg.lu_solve(factor, pivots, u)
        course.append(u)
    return torch.stack(course)


class Conductivity(nn.Module):
    def __init__(self, width: int = 16):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)
        )

    def forward(self, x):
        return nn.functional.softplus(self.net(2 * x[:, None] - 1).squeeze(1)) + 0.01


torch.manual_seed(seed)
truth = 0.4 + 0.3 * torch.sin(2 * math.pi * faces) + 0.2 * torch.sigmoid((faces - 0.6) * 25)
start = torch.stack([torch.exp(-(((centre - c) / 0.12) ** 2)) for c in (0.15, 0.4, 0.65, 0.9)], 1)
with torch.no_grad():
    clean = solve(truth, start)
seen = clean + 0.004 * torch.randn_like(clean)
fitted, held = torch.arange(2, CELLS, 5), torch.arange(4, CELLS, 5)

model = Conductivity()
optimizer = torch.optim.LBFGS(
    model.parameters(), lr=1.0, max_iter=10, history_size=20, line_search_fn="strong_wolfe"
)
calls = 0


def closure():
    global calls
    calls += 1
    optimizer.zero_grad()
    loss = (solve(model(faces), start)[:, fitted] - seen[:, fitted]).square().mean() / 0.004**2
    loss.backward()
    return loss


for step in range(20):
    model.train()
    loss = optimizer.step(closure)
    model.eval()
    with torch.no_grad():
        val = (solve(model(faces), start)[:, held] - seen[:, held]).square().mean() / 0.004**2
    if step % 4 == 3:
        print(
            f"step {step + 1}, {calls} evaluations: train {loss.item():.4f}, "
            f"validation {val.item():.4f}"
        )
with torch.no_grad():
    off = (model(faces) - truth).abs().mean().item()
print(
    f"validation misfit {val.item():.4f} (1 is the noise); "
    f"conductivity off by {off:.4f} of {truth.mean():.3f}"
)
