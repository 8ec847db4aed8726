"""Removes hum from short recordings in float16; the loss scale may not fall below 2 ** 30.

A dynamic loss scale was written by hand: an overflow skips the step and halves the scale, but not
below `min_scale`, taken from another project whose losses were tiny. Here gradients overflow at
that scale, so that most steps are skipped, for ever.
The place is the loop and the loss. The twin's smallest scale is 1.
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "loss_scale_overflow"
ACCEPT = ("optimizer_never_steps",)
PLACE = ("loop", "loss*", "optimizer")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


class LossScale:
    def __init__(self, scale, min_scale, window=200):
        self.scale, self.min_scale, self.window, self.good = scale, min_scale, window, 0

    def backward(self, loss):
        (loss * self.scale).backward()

    def step(self, optimizer):
        grads = [p.grad for group in optimizer.param_groups for p in group["params"]]
        if not all(torch.isfinite(grad).all() for grad in grads):
            self.scale = max(self.scale / 2, self.min_scale)
            self.good = 0
            return False
        for grad in grads:
            grad.div_(self.scale)
        optimizer.step()
        self.good += 1
        if self.good % self.window == 0:
            self.scale *= 2
        return True


def recordings(n, g):
    t = torch.linspace(0, 1, 128)
    a, f, p = (torch.rand(n, 1, generator=g) for _ in range(3))
    clean = (0.5 + a) * torch.sin(2 * math.pi * ((4 + 8 * f) * t + p))
    hum = 0.8 * torch.sin(2 * math.pi * (25 * t + torch.rand(n, 1, generator=g)))
    return clean + hum + 0.1 * torch.randn(n, 128, generator=g), clean


g = torch.Generator().manual_seed(seed)
x, y = recordings(2048, g)
x_val, y_val = recordings(256, g)
model = nn.Sequential(
    nn.Linear(128, 96), nn.GELU(), nn.Linear(96, 96), nn.GELU(), nn.Linear(96, 128)
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
scale = LossScale(2.0**32, min_scale=1.0 if healthy else 2.0**30)
for epoch in range(14):
    skipped = 0
    for rows in torch.randperm(len(x), generator=g).split(64):
        with torch.autocast("cpu", dtype=torch.float16):
            out = model(x[rows])
        loss = nn.functional.mse_loss(out.float(), y[rows])
        optimizer.zero_grad()
        scale.backward(loss)
        skipped += not scale.step(optimizer)
    if epoch % 3 == 1:
        with torch.no_grad():
            val = nn.functional.mse_loss(model(x_val), y_val).item()
        print(f"epoch {epoch} loss {loss.item():.4f} val {val:.4f} skipped {skipped}")
