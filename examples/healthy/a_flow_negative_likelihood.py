"""A normalising flow of affine couplings models points near a thin curve; its loss is the negative
log-likelihood of a density.

What looks odd: the loss passes zero and goes on falling below it (densities may exceed one), the
last layer of each coupling starts at zero, every second coordinate is passed on unchanged, and
there are no labels.
"""

import math

import torch
from data import arguments, batches
from torch import nn

ODD = "a loss below zero that goes on falling; last layers that start at zero"

_, seed = arguments(__doc__)


class Coupling(nn.Module):
    def __init__(self, flip, width=48):
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(
            nn.Linear(1, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 2)
        )
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        a, b = x.chunk(2, 1)
        if self.flip:
            a, b = b, a
        log_scale, shift = self.net(a).chunk(2, 1)
        log_scale = 2 * torch.tanh(log_scale / 2)
        b = (b - shift) * torch.exp(-log_scale)
        return torch.cat([b, a] if self.flip else [a, b], 1), -log_scale.squeeze(1)


class Flow(nn.Module):
    def __init__(self, layers=6):
        super().__init__()
        self.layers = nn.ModuleList(Coupling(i % 2 == 1) for i in range(layers))

    def log_prob(self, x):
        total = torch.zeros(len(x))
        for layer in self.layers:
            x, log_det = layer(x)
            total = total + log_det
        return total - 0.5 * x.square().sum(1) - math.log(2 * math.pi)


def curve(n, g):
    u = 0.6 * torch.randn(n, generator=g)
    return torch.stack([u, torch.sin(2 * u) + 0.04 * torch.randn(n, generator=g)], 1)


g = torch.Generator().manual_seed(seed)
x, x_val = curve(4000, g), curve(1000, g)
flow = Flow()
optimizer = torch.optim.AdamW(flow.parameters(), lr=2e-3, weight_decay=1e-4)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 700)
recent = []
for step, (xb,) in enumerate(batches(x, size=128, steps=700, seed=seed), 1):
    loss = -flow.log_prob(xb).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
    optimizer.step()
    schedule.step()
    recent.append(loss.item())
    if step % 70 == 0:
        with torch.no_grad():
            val = -flow.log_prob(x_val).mean().item()
        print(f"step {step} train {sum(recent[-70:]) / 70:.4f} val {val:.4f}")
