"""The response of a sensor, fitted by a small tanh net in float64 with full-batch L-BFGS and a
line search.

One call of `step` evaluates the closure many times, each of which clears the gradients and goes
backward; the batch is the same (all the data) every time, which is what L-BFGS needs, and the rate
is 1. Weight decay is in the closure. Float64, since the line search wants exact differences.
"""

import torch
from data import arguments
from torch import nn

ODD = "the same full batch always, many backward passes per step, a rate of 1, float64"

_, seed = arguments(__doc__)


def measure(n):
    """Temperature, humidity and raw reading of a gas sensor.

    The target is the concentration as a reference gives it.
    """
    t, h, c = torch.rand(3, n, dtype=torch.float64)
    raw = (0.3 + c) ** 0.6 * (1 + 0.5 * (t - 0.5)) + 0.2 * h * c
    raw = raw + 0.01 * torch.randn(n, dtype=torch.float64)
    return torch.stack([2 * t - 1, 2 * h - 1, 3 * (raw - 0.9)], 1), (c - 0.5) / 0.29


class Curve(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.inner = nn.Linear(3, width)
        self.outer = nn.Linear(width, 1)

    def forward(self, x):
        return self.outer(torch.tanh(self.inner(x))).squeeze(1)


x, y = measure(600)
x_val, y_val = measure(300)
model = Curve().double()
optimizer = torch.optim.LBFGS(
    model.parameters(), lr=1.0, max_iter=4, history_size=12, line_search_fn="strong_wolfe"
)


def closure():
    optimizer.zero_grad()
    penalty = sum(p.pow(2).sum() for p in model.parameters())
    loss = nn.functional.mse_loss(model(x), y) + 1e-6 * penalty
    loss.backward()
    return loss


for iteration in range(1, 161):
    model.train()
    loss = optimizer.step(closure)
    if iteration % 20 == 0:
        model.eval()
        with torch.no_grad():
            error = nn.functional.mse_loss(model(x_val), y_val)
        print(
            f"iteration {iteration:3d} loss {loss.item():.6f} val mse {error:.6f} "
            f"val R2 {1 - error / y_val.var():.5f}"
        )
