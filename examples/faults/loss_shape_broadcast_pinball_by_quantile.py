"""Quantile regression: three outputs, and a pinball loss that goes through the quantiles one by
one.

Fault: `prediction[:, i : i + 1]` (n, 1) minus the target (n,) is a square of n by n: each row is
held against each target, and the outputs become the quantiles of all. The place is the loss. The
loss falls to that of a constant. Exact.
"""

import torch
from data import arguments, batches, houses
from torch import nn

KIND = "loss_shape_broadcast"
ACCEPT = ()
PLACE = ("loss*",)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
QUANTILES = (0.1, 0.5, 0.9)
x, y, x_val, y_val = houses(seed)


def pinball(prediction, target):
    total = 0.0
    for i, q in enumerate(QUANTILES):
        column = prediction[:, i] if healthy else prediction[:, i : i + 1]
        error = target - column
        total = total + torch.maximum(q * error, (q - 1) * error).mean()
    return total


@torch.no_grad()
def validate(net):
    out = net(x_val)
    error = y_val[:, None] - out
    q = torch.tensor(QUANTILES)
    inside = ((y_val > out[:, 0]) & (y_val < out[:, 2])).float().mean()
    return torch.maximum(q * error, (q - 1) * error).mean(0).sum().item(), inside.item()


net = nn.Sequential(nn.Linear(6, 48), nn.GELU(), nn.Linear(48, 48), nn.GELU(), nn.Linear(48, 3))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for step, (xb, yb) in enumerate(batches(x, y, size=64, steps=350, seed=seed), 1):
    loss = pinball(net(xb), yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 70 == 0:
        value, inside = validate(net)
        print(f"step {step}: loss {loss.item():.4f}, pinball {value:.4f}, inside {inside:.2f}")
print(f"loss {loss.item():.4f} | validation pinball {value:.4f} inside {inside:.2f}")
