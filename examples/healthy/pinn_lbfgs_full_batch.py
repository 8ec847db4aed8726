"""A physics-informed network solves y'' = -y - 0.4 y' with L-BFGS on the same points in every
step.
"""

import torch
from data import arguments
from torch import nn

ODD = (
    "one and the same batch in every step, many evaluations of the closure per step, no data at all"
)

_, seed = arguments(__doc__)
net = nn.Sequential(nn.Linear(1, 20), nn.Tanh(), nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 1))
t = torch.linspace(0, 1, 60).unsqueeze(1).requires_grad_(True)  # a tenth of the time
optimizer = torch.optim.LBFGS(net.parameters(), lr=1.0, max_iter=10, line_search_fn="strong_wolfe")


def residuals():
    y = net(t)
    (dy,) = torch.autograd.grad(y.sum(), t, create_graph=True)
    (ddy,) = torch.autograd.grad(dy.sum(), t, create_graph=True)
    equation = ddy / 36 + 0.4 * dy / 6 + y
    start = (y[0] - 1).square() + (dy[0] / 6).square()
    return equation.square().mean() + 10 * start.sum()


def closure():
    optimizer.zero_grad()
    loss = residuals()
    loss.backward()
    return loss


for step in range(60):
    loss = optimizer.step(closure)
w = (1 - 0.04) ** 0.5
s = torch.linspace(0, 6, 60).unsqueeze(1)
truth = torch.exp(-0.2 * s) * (torch.cos(w * s) + 0.2 / w * torch.sin(w * s))
net.eval()
with torch.no_grad():
    error = (net(s / 6) - truth).abs().max().item()
print(f"loss {loss.item():.2e} largest error {error:.4f}")
