"""A normalising flow on two curved bands of points, whose loss is a negative log-density and
rightly falls below zero.

It looks odd as the loss changes its sign and has no floor at zero: a density above 1 is no fault,
and the validation value follows the training's. Its coupling layers end in weights of zero on
purpose, so that the flow starts as the identity.
"""

import math

import torch
from data import arguments
from torch import nn

ODD = (
    "A normalising flow on two curved bands of points, whose loss is a negative log-density "
    "and rightly falls below zero"
)
_, seed = arguments(__doc__)


def bands(n, generator):
    side = torch.randint(0, 2, (n,), generator=generator)
    t = torch.rand(n, generator=generator) * math.pi
    x = torch.stack(
        [t.cos() + side - 0.5, torch.where(side == 1, -t.sin() + 0.3, t.sin() - 0.3)], 1
    )
    return 0.55 * x + 0.02 * torch.randn(n, 2, generator=generator)


class Coupling(nn.Module):
    def __init__(self, kept, width=64):
        super().__init__()
        self.kept = kept
        self.net = nn.Sequential(
            nn.Linear(1, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 2)
        )
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        a, b = x[:, self.kept : self.kept + 1], x[:, 1 - self.kept : 2 - self.kept]
        log_scale, shift = self.net(a).chunk(2, 1)
        log_scale = 1.5 * torch.tanh(log_scale)
        b = b * log_scale.exp() + shift
        x = torch.cat([a, b] if self.kept == 0 else [b, a], 1)
        return x, log_scale.squeeze(1)


class Flow(nn.Module):
    def __init__(self, depth=8):
        super().__init__()
        self.couplings = nn.ModuleList(Coupling(i % 2) for i in range(depth))

    def log_density(self, x):
        total = 0
        for coupling in self.couplings:
            x, log_det = coupling(x)
            total = total + log_det
        return total - 0.5 * x.pow(2).sum(1) - math.log(2 * math.pi)


generator = torch.Generator().manual_seed(seed)
points, held_out = bands(6000, generator), bands(2000, generator)
flow = Flow()
optimizer = torch.optim.Adam(flow.parameters(), lr=1.5e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1000)
for step in range(1000):
    rows = torch.randint(0, len(points), (200,), generator=generator)
    loss = -flow.log_density(points[rows]).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
    optimizer.step()
    scheduler.step()
    if step % 100 == 99:
        with torch.no_grad():
            val = -flow.log_density(held_out).mean().item()
        print(f"step {step + 1} loss {loss.item():.3f} validation loss {val:.3f}")
