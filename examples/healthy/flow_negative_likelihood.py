"""A normalising flow (RealNVP) learns the joint density of six sensors of a heat pump, in their
small natural units.

Looks odd: the loss is negative from early on and falls on without a floor at 0, and there are no
targets at all. It is sound: a density over quantities with a spread of 0.1 is above 1, and its
negative log is below 0; held-out likelihood follows the training's.
"""

import math

import torch
from data import arguments
from torch import nn

ODD = (
    "A normalising flow (RealNVP) learns the joint density of six sensors of a heat pump, in "
    "their small natural units"
)

_, seed = arguments(__doc__)
DIM = 6


def sensors(n, g):
    base = torch.randn(n, 3, generator=g)
    t_out = 0.12 * base[:, 0]
    load = 0.1 * torch.tanh(base[:, 1]) - 0.4 * t_out
    cop = (
        0.15 * torch.exp(-0.5 * base[:, 0] ** 2) + 0.5 * t_out + 0.02 * torch.randn(n, generator=g)
    )
    flow = 0.08 * torch.sin(2 * base[:, 1]) + 0.03 * torch.randn(n, generator=g)
    pressure = load**2 * 3 + 0.05 * base[:, 2]
    power = load * (1 - cop) + 0.03 * torch.randn(n, generator=g)
    x = torch.stack(
        [t_out, load + 0.02 * torch.randn(n, generator=g), cop, flow, pressure, power], 1
    )
    return x - x.mean(0)


class Coupling(nn.Module):
    def __init__(self, mask, hidden=64):
        super().__init__()
        self.register_buffer("mask", mask)
        self.net = nn.Sequential(
            nn.Linear(DIM, hidden),
            nn.LeakyReLU(0.1),
            nn.Linear(hidden, hidden),
            nn.LeakyReLU(0.1),
            nn.Linear(hidden, 2 * DIM),
        )
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        s, t = self.net(x * self.mask).chunk(2, 1)
        s = 2 * torch.tanh(s / 2) * (1 - self.mask)
        return x * torch.exp(s) + t * (1 - self.mask), s.sum(1)


class RealNVP(nn.Module):
    def __init__(self, layers=6):
        super().__init__()
        self.log_scale = nn.Parameter(torch.full((DIM,), 2.0))
        masks = [
            torch.tensor([(i + k) % 2 for i in range(DIM)], dtype=torch.float32)
            if k < layers - 2
            else torch.tensor([float(i < 3) if k % 2 else float(i >= 3) for i in range(DIM)])
            for k in range(layers)
        ]
        self.layers = nn.ModuleList(Coupling(m) for m in masks)

    def log_prob(self, x):
        z, logdet = x * self.log_scale.exp(), self.log_scale.sum()
        for layer in self.layers:
            z, d = layer(z)
            logdet = logdet + d
        return -0.5 * (z**2).sum(1) - 0.5 * DIM * math.log(2 * math.pi) + logdet


g = torch.Generator().manual_seed(seed)
x, x_val = sensors(10_000, g), sensors(2000, g)
flow = RealNVP()
opt = torch.optim.AdamW(flow.parameters(), lr=1e-3, weight_decay=1e-4)
steps, size = 900, 256
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, steps, eta_min=1e-5)
for step in range(1, steps + 1):
    flow.train()
    batch = x[torch.randint(0, len(x), (size,), generator=g)]
    loss = -flow.log_prob(batch).mean()
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(flow.parameters(), 10.0)
    opt.step()
    sched.step()
    if step % 150 == 0:
        flow.eval()
        with torch.no_grad():
            print(
                f"step {step} nll {loss.item():.4f} val nll {-flow.log_prob(x_val).mean().item():.4f}"  # noqa: E501
            )
