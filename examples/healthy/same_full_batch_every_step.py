"""A network for the heat equation is fitted with L-BFGS on the same 400 points at every evaluation.

A quasi-Newton method wants one fixed function; all there is to learn from is in that one batch, and
the solution is right between the points too. There is no fault and no place.
"""

import math

import torch
from data import arguments
from torch import nn

ODD = "every step sees the very same batch (full-batch L-BFGS on fixed collocation points)"

arguments(__doc__)
inside = torch.rand(300, 2)
start = torch.stack([torch.linspace(0, 1, 50), torch.zeros(50)], 1)
ends = torch.stack([torch.arange(50) % 2.0, torch.rand(50)], 1)
heat = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 1))
optimizer = torch.optim.LBFGS(
    heat.parameters(), lr=1.0, max_iter=4, history_size=20, line_search_fn="strong_wolfe"
)


def residuals():
    points = inside.clone().requires_grad_()
    u = heat(points)
    (du,) = torch.autograd.grad(u.sum(), points, create_graph=True)
    (dux,) = torch.autograd.grad(du[:, 0].sum(), points, create_graph=True)
    equation = (du[:, 1] - 0.1 * dux[:, 0]).square().mean()
    initial = (heat(start)[:, 0] - torch.sin(math.pi * start[:, 0])).square().mean()
    return equation + 5 * initial + 5 * heat(ends).square().mean()


def closure():
    optimizer.zero_grad()
    loss = residuals()
    loss.backward()
    return loss


for step in range(1, 81):
    loss = optimizer.step(closure)
    if step % 20 == 0:
        new = torch.rand(1000, 2)
        exact = torch.sin(math.pi * new[:, 0]) * torch.exp(-0.1 * math.pi**2 * new[:, 1])
        with torch.no_grad():
            error = (heat(new)[:, 0] - exact).abs().max()
        print(f"step {step}: loss {loss.item():.2e}, largest error between the points {error:.4f}")
