"""A mixture density network learns an inverse problem; its loss falls below zero and its output is
no point.

Odd: the loss (a negative log likelihood of a density) is negative, has noise, and two opposite
targets go with one input. Sound: a density may exceed 1, the validation likelihood improves with
it, and training stops on time.
"""

import math

import torch
from data import arguments
from torch import nn

ODD = (
    "A mixture density network learns an inverse problem; its loss falls below zero and its "
    "output is no point"
)
_, seed = arguments(__doc__)


def inverse(n, g):
    """Which angle made the ball land at x? Mostly two angles do."""
    u = torch.rand(n, generator=g)
    angle = 0.15 + 1.25 * u
    x = (2 * angle).sin() + 0.015 * torch.randn(n, generator=g)
    return ((x - 0.7) / 0.25).unsqueeze(1), ((angle - 0.78) / 0.36).unsqueeze(1)


class MixtureDensity(nn.Module):
    def __init__(self, parts=4):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(1, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh())
        self.weight = nn.Linear(48, parts)
        self.mean = nn.Linear(48, parts)
        self.log_std = nn.Linear(48, parts)

    def log_density(self, x, y):
        h = self.body(x)
        log_std = self.log_std(h).clamp(-4.5, 2)
        z = (y - self.mean(h)) * (-log_std).exp()
        each = -0.5 * z.square() - log_std - 0.5 * math.log(2 * math.pi)
        return torch.logsumexp(each + self.weight(h).log_softmax(1), 1)


g = torch.Generator().manual_seed(seed)
x, y = inverse(4000, g)
x_val, y_val = inverse(1000, g)
model = MixtureDensity()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1800)
for step in range(1, 1801):
    rows = torch.randint(0, len(x), (128,), generator=g)
    loss = -model.log_density(x[rows], y[rows]).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    scheduler.step()
    if step % 300 == 0:
        model.eval()
        with torch.no_grad():
            val = -model.log_density(x_val, y_val).mean().item()
        model.train()
        print(f"step {step}: loss {loss.item():.3f}, validation {val:.3f}")
