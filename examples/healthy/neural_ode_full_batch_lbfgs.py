"""The vector field of a reaction between two species, fitted by L-BFGS to the whole of a small data
set.

A second-order method needs a loss without noise: every step sees the same full batch, in double
precision, and calls its closure two or more times, with several forward and backward passes for one
step. One learning rate of 1.0 is the method's own, the line search finds the length.
"""

import torch
from data import arguments
from torch import nn

ODD = "the same full batch at every step, a rate of 1.0, many backward passes for one step, float64"

_, seed = arguments(__doc__)
torch.set_default_dtype(torch.float64)
DT, STEPS = 0.2, 10


def truth(state):
    """A Brusselator."""
    u, v = state.unbind(-1)
    return torch.stack([1 - 3.0 * u + u**2 * v, 2.0 * u - u**2 * v], -1)


def integrate(field, state, steps=STEPS):
    """Runge-Kutta of fourth order; the path without its start."""
    path = []
    for _ in range(steps):
        k1 = field(state)
        k2 = field(state + DT / 2 * k1)
        k3 = field(state + DT / 2 * k2)
        k4 = field(state + DT * k3)
        state = state + DT / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        path.append(state)
    return torch.stack(path, 1)


class Field(nn.Module):
    def __init__(self, width=20):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 2)
        )

    def forward(self, state):
        return self.net(state - 1.2)


def experiments(count):
    start = 0.4 + 1.6 * torch.rand(count, 2)
    path = integrate(truth, start)
    return start, path + 0.01 * torch.randn_like(path)


start, path = experiments(48)
start_val, path_val = experiments(24)
field = Field()
optimizer = torch.optim.LBFGS(
    field.parameters(), lr=1.0, max_iter=2, history_size=20, line_search_fn="strong_wolfe"
)
calls = 0


def closure():
    global calls
    calls += 1
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(integrate(field, start), path)
    loss = loss + 1e-6 * sum(p.square().sum() for p in field.parameters())
    loss.backward()
    return loss


for step in range(160):
    field.train()
    loss = optimizer.step(closure)
    if step % 20 == 19:
        field.eval()
        with torch.no_grad():
            error = nn.functional.mse_loss(integrate(field, start_val), path_val).item()
        print(f"step {step + 1} ({calls} passes) loss {loss.item():.6f} val mse {error:.6f}")
print(f"validation mse {error:.6f} of variance {path_val.var().item():.4f}")
