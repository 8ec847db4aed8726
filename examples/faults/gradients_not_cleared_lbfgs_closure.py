"""A physics-informed net for a boundary value problem, with L-BFGS; its closure forgets zero_grad.

L-BFGS calls the closure many times a step, each call adds to the gradients of all calls before:
the search directions are wrong, the line search gives up within a few steps, the residual stays
put or turns to NaN. The place is the optimizer.
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "gradients_not_cleared"
ACCEPT = ()
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
u_net = nn.Sequential(nn.Linear(1, 20), nn.Tanh(), nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 1))
# u'' = -pi^2 sin(pi x) on (-1, 1), u(-1) = u(1) = 0: solved by u = sin(pi x)
inner = torch.linspace(-1, 1, 64).view(-1, 1).requires_grad_()
edge = torch.tensor([[-1.0], [1.0]])
force = -(math.pi**2) * torch.sin(math.pi * inner.detach())
optimizer = torch.optim.LBFGS(
    u_net.parameters(), lr=1.0, max_iter=5, history_size=20, line_search_fn="strong_wolfe"
)


def residual():
    u = u_net(inner)
    (du,) = torch.autograd.grad(u.sum(), inner, create_graph=True)
    (ddu,) = torch.autograd.grad(du.sum(), inner, create_graph=True)
    return ((ddu - force) / math.pi**2).square().mean() + u_net(edge).square().mean()


def closure():
    if healthy:
        optimizer.zero_grad()
    loss = residual()
    loss.backward()
    return loss


for step in range(40):
    loss = optimizer.step(closure)
grid = torch.linspace(-1, 1, 201).view(-1, 1)
with torch.no_grad():
    error = (u_net(grid) - torch.sin(math.pi * grid)).abs().max()
print(f"loss {loss.item():.2e}, largest error {error:.4f}")
