"""The closure for L-BFGS calls backward but never zero_grad, so gradients of all evaluations pile
up.

L-BFGS calls the closure several times a step, and each call adds to `.grad`: directions and
curvature pairs come from sums over old points, the steps grow without bound and end in NaN. The
place is the loop's closure.
"""

import torch
from data import arguments
from torch import nn

KIND = "gradients_not_cleared"
ACCEPT = ()
PLACE = ("loop", "optimizer", "")
SILENT = False
EXACT = True
EARLY = True


class Oscillator(nn.Module):
    """x(t) of a damped spring as a small network of scaled time."""

    def __init__(self, width=24):
        super().__init__()
        self.hidden = nn.Linear(1, width)
        self.middle = nn.Linear(width, width)
        self.out = nn.Linear(width, 1)

    def forward(self, t):
        return self.out(torch.tanh(self.middle(torch.tanh(self.hidden(t)))))


def main():
    healthy, _ = arguments(__doc__)
    t = torch.linspace(-1, 1, 240)[:, None]
    x = torch.exp(-0.8 * (t + 1)) * torch.cos(7 * (t + 1))
    x = (x - x.mean()) / x.std()
    noisy = x + 0.05 * torch.randn_like(x)

    net = Oscillator()
    optimizer = torch.optim.LBFGS(net.parameters(), lr=0.5, max_iter=4, history_size=20)

    def closure():
        if healthy:
            optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(t), noisy)
        loss.backward()
        return loss

    for step in range(80):
        loss = optimizer.step(closure)
        if step % 16 == 15:
            with torch.no_grad():
                error = nn.functional.mse_loss(net(t), x).item()
            print(
                f"step {step + 1}: loss {loss.item():.5f}, error against the true curve {error:.5f}"
            )


main()
