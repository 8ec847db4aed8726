"""A diffusion model of points on a ring is trained by Adam with the 0.3 of a script that used SGD.

The error of the predicted noise leaps in the first steps and stays near 1, that of predicting
nothing, and the drawn points run away from the ring; with 0.002 they lie on it. The place is the
optimizer: its learning rate.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "learning_rate_too_high"
ACCEPT = ()
PLACE = ("learning_rate", "optimizer")
SILENT = False
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

LEVELS, STEPS, BATCH = 40, 1600, 128
LEARNING_RATE = 2e-3 if healthy else 0.3
kept = torch.cumprod(1 - torch.linspace(1e-3, 0.15, LEVELS), 0)


def ring(n, rng):
    radius = rng.normal(1.4, 0.1, n)
    angle = rng.uniform(0, 2 * np.pi, n)
    return torch.tensor(np.stack([np.cos(angle), np.sin(angle)], 1) * radius[:, None]).float()


class NoisePredictor(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.register_buffer("frequencies", 2.0 ** torch.arange(5) * math.pi / 2)
        self.net = nn.Sequential(
            nn.Linear(2 + 10, width), nn.SiLU(),
            nn.Linear(width, width), nn.SiLU(),
            nn.Linear(width, width), nn.SiLU(),
            nn.Linear(width, 2),
        )  # fmt: skip

    def forward(self, points, level):
        phase = (level[:, None] / LEVELS) * self.frequencies
        return self.net(torch.cat([points, phase.sin(), phase.cos()], 1))


def diffusion_loss(model, points):
    level = torch.randint(0, LEVELS, (len(points),))
    noise = torch.randn_like(points)
    share = kept[level][:, None]
    return F.mse_loss(model(share.sqrt() * points + (1 - share).sqrt() * noise, level), noise)


@torch.no_grad()
def draw(model, n):
    points = torch.randn(n, 2)
    for level in reversed(range(LEVELS)):
        now = kept[level]
        before = kept[level - 1] if level else torch.tensor(1.0)
        step = 1 - now / before
        noise = model(points, torch.full((n,), level))
        points = (points - step / (1 - now).sqrt() * noise) / (1 - step).sqrt()
        if level:
            points += (step * (1 - before) / (1 - now)).sqrt() * torch.randn_like(points)
    return points


rng = np.random.default_rng(seed)
train, validation = ring(3000, rng), ring(1000, rng)
model = NoisePredictor()
optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
recent = []
for step in range(1, STEPS + 1):
    model.train()
    loss = diffusion_loss(model, train[torch.randint(0, len(train), (BATCH,))])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    recent.append(loss.item())
    if step % 200 == 0:
        model.eval()
        with torch.no_grad():
            val_loss = diffusion_loss(model, validation).item()
        print(f"step {step:4d} train {np.mean(recent[-200:]):.3f} val {val_loss:.3f}")
off = (draw(model, 500).norm(dim=1) - 1.4).abs().mean().item()
print(f"mean distance of drawn points from the ring: {off:.3f}")
