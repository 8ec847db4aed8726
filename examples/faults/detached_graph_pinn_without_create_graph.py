"""A physics-informed net for a driven, growing quantity: u' = u + cos(3 t), u(0) = 0.2.

Fault: `torch.autograd.grad` without `create_graph=True`: u' is a number, not a function of the
weights, and the equation only pulls on u. The place is the loss. The residual falls here and
there, the solution is wrong.
"""

import torch
from data import arguments
from torch import nn

KIND = "detached_graph"
ACCEPT = ("detached_loss",)
PLACE = ("loss*", "loop", "")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
net = nn.Sequential(nn.Linear(1, 32), nn.SiLU(), nn.Linear(32, 32), nn.SiLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 600)


def residual(t):
    t.requires_grad_(True)
    u = net(t - 1)
    if healthy:
        (slope,) = torch.autograd.grad(u.sum(), t, create_graph=True)
    else:
        (slope,) = torch.autograd.grad(u.sum(), t, retain_graph=True)
    return slope - u - torch.cos(3 * t)


def solution(t):
    return 0.3 * torch.exp(t) - 0.1 * torch.cos(3 * t) + 0.3 * torch.sin(3 * t)


t_val = torch.linspace(0, 2, 101).unsqueeze(1)
for step in range(1, 601):
    optimizer.zero_grad()
    t = torch.rand(64, 1) * 2
    start = (net(torch.zeros(1, 1) - 1) - 0.2).pow(2).mean()
    equation = residual(t).pow(2).mean()
    loss = equation + 10 * start
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 100 == 0:
        with torch.no_grad():
            error = (net(t_val - 1) - solution(t_val)).pow(2).mean().sqrt().item()
        print(f"step {step}: loss {loss.item():.5f}, error {error:.4f}")
print(f"loss {loss.item():.5f} | validation RMSE {error:.4f}")
