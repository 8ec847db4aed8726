"""A physics-informed network solves the heat equation on a rod with L-BFGS, after 100 steps of
Adam.

A closure is called several times per step, the same collocation points are used in every step, and
the loss takes derivatives of the network. What looks odd (one constant batch, many backward passes
per step, tanh layers, a loss of derivatives) is how such solvers are trained.
"""

import math

import torch
from data import arguments
from torch import nn

ODD = "one batch at each step, many backward passes in it, and a loss of derivatives"

_, seed = arguments(__doc__)

net = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 1))


def exact(x, t):
    return torch.exp(-0.5 * t) * torch.sin(math.pi * x)


def derivative(y, x):
    return torch.autograd.grad(y.sum(), x, create_graph=True)[0]


points = torch.rand(600, 2)
edge = torch.cat(
    [
        torch.stack([torch.rand(100), torch.zeros(100)], 1),
        torch.stack([torch.randint(0, 2, (100,)).float(), torch.rand(100)], 1),
    ]
)
at_edge = exact(edge[:, :1], edge[:, 1:])
grid = torch.cartesian_prod(torch.linspace(0, 1, 21), torch.linspace(0, 1, 21))


def objective():
    inside = points.clone().requires_grad_()
    u = net(inside)
    first = derivative(u, inside)
    second = derivative(first[:, 0], inside)[:, :1]
    residual = first[:, 1:] - 0.5 / math.pi**2 * second
    return residual.square().mean() + 5 * (net(edge) - at_edge).square().mean()


def report(name, loss):
    with torch.no_grad():
        error = (net(grid) - exact(grid[:, :1], grid[:, 1:])).square().mean().sqrt().item()
    print(f"{name} loss {loss:.3e} error on the grid {error:.4f}")


adam = torch.optim.Adam(net.parameters(), lr=3e-3)
for step in range(100):
    loss = objective()
    adam.zero_grad()
    loss.backward()
    adam.step()
report("adam ", loss.item())

lbfgs = torch.optim.LBFGS(
    net.parameters(), lr=1.0, max_iter=10, history_size=20, line_search_fn="strong_wolfe"
)


def closure():
    lbfgs.zero_grad()
    loss = objective()
    loss.backward()
    return loss


for step in range(25):
    loss = lbfgs.step(closure)
    if step % 5 == 4:
        report(f"lbfgs {step + 1}", loss.item())
