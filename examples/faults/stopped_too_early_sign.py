"""A physics-informed net learns a damped oscillation from its equation and its start. Early
stopping ends the training when the validation residual has not improved for three checks.

"Improved" means larger in the author's stopper, which comes from a classifier's accuracy: the
falling error never counts as an improvement after the first check, and the training ends while it
falls. The place is the loop.
"""

import torch
from data import arguments
from torch import nn

KIND = "stopped_too_early"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


class EarlyStopping:
    def __init__(self, patience, mode="max"):
        self.patience, self.sign = patience, 1 if mode == "max" else -1
        self.best, self.bad = float("-inf"), 0

    def __call__(self, value):
        value *= self.sign
        if value > self.best:
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        return self.bad >= self.patience


class Sine(nn.Module):
    def forward(self, x):
        return x.sin()


def build(width=32):
    return nn.Sequential(
        nn.Linear(1, width),
        Sine(),
        nn.Linear(width, width),
        Sine(),
        nn.Linear(width, width),
        Sine(),
        nn.Linear(width, 1),
    )


DAMP, FREQ = 0.4, 3.0


def residual(net, t):
    """u'' + 2 d u' + w^2 u = 0."""
    t = t.requires_grad_(True)
    u = net(t)
    (du,) = torch.autograd.grad(u.sum(), t, create_graph=True)
    (ddu,) = torch.autograd.grad(du.sum(), t, create_graph=True)
    return (ddu + 2 * DAMP * du + FREQ**2 * u) / FREQ**2


def start(net):
    t = torch.zeros(1, 1, requires_grad=True)
    u = net(t)
    (du,) = torch.autograd.grad(u.sum(), t, create_graph=True)
    return (u - 1).pow(2).sum() + (du / FREQ).pow(2).sum()


def exact(t):
    w = (FREQ**2 - DAMP**2) ** 0.5
    return (-DAMP * t).exp() * ((w * t).cos() + DAMP / w * (w * t).sin())


net = build()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.998)
stop = EarlyStopping(patience=3, mode="min" if healthy else "max")
t_val = torch.linspace(0, 3, 101)[:, None]
for step in range(1400):
    loss = residual(net, 3 * torch.rand(64, 1)).pow(2).mean() + 2 * start(net)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if step % 50 == 49:
        val = residual(net, t_val).pow(2).mean() + 2 * start(net)
        with torch.no_grad():
            off = (net(t_val) - exact(t_val)).pow(2).mean().sqrt()
        print(f"step {step + 1}: loss {loss.item():.5f} val {val.item():.5f} rmse {off.item():.4f}")
        if stop(val.item()):
            break
