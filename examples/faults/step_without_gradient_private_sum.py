"""Differentially private training by hand: the clipped gradients are summed aside and never put
back.

After each micro-batch the gradient goes into `p.summed` and is cleared; the lines that give the
noisy sum back to `p.grad` are missing, so the optimizer finds no gradient at all: nothing moves.
The place is the loop.
"""

import torch
import torch.nn.functional as F
from data import arguments, cancer
from torch import nn

KIND = "step_without_gradient"
ACCEPT = ()
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = True
EARLY = True

LOT, MICRO, CLIP, NOISE = 48, 8, 1.0, 0.05

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = cancer(seed)
net = nn.Sequential(nn.Linear(30, 24), nn.Tanh(), nn.Linear(24, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.3, momentum=0.5)


def private_gradients(rows):
    for p in net.parameters():
        p.summed = torch.zeros_like(p)
    total = 0.0
    parts = rows.split(MICRO)
    for part in parts:
        loss = F.cross_entropy(net(x[part]), y[part])
        loss.backward()
        norm = torch.sqrt(sum(p.grad.square().sum() for p in net.parameters()))
        for p in net.parameters():
            p.summed += p.grad * (CLIP / norm).clamp(max=1.0)
            p.grad = None
        total += loss.item() / len(parts)
    for p in net.parameters():
        p.summed += NOISE * CLIP * torch.randn_like(p)
        if healthy:
            p.grad = p.summed / len(parts)
    return total


for epoch in range(20):
    for rows in torch.randperm(len(x)).split(LOT):
        if len(rows) < LOT:
            continue
        mean = private_gradients(rows)
        optimizer.step()
    with torch.no_grad():
        out = net(x_val)
        val = F.cross_entropy(out, y_val).item()
print(
    f"loss {mean:.3f}, validation loss {val:.3f}, accuracy "
    f"{(out.argmax(1) == y_val).float().mean():.3f}"
)
