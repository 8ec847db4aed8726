"""A denoising diffusion model of two moons with an exponential moving average of the weights."""

import copy
import math

import torch
from data import arguments
from sklearn.datasets import make_moons
from torch import nn

ODD = "the loss falls a little and then swings about its floor, which is far from 0; no validation"

_, seed = arguments(__doc__)
T = 50
points = torch.tensor(make_moons(3000, noise=0.05, random_state=seed)[0]).float()
points = (points - points.mean(0)) / points.std(0)
beta = torch.linspace(1e-3, 0.15, T)
kept = torch.cumprod(1 - beta, 0)


class Denoiser(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.register_buffer("rates", torch.exp(torch.linspace(0, math.log(60), 8)))
        self.net = nn.Sequential(
            nn.Linear(18, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(),
            nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 2),
        )  # fmt: skip

    def forward(self, x, t):
        angle = t[:, None] / T * self.rates
        return self.net(torch.cat([x, angle.sin(), angle.cos()], 1))


model = Denoiser()
average = copy.deepcopy(model).requires_grad_(False)
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 900, eta_min=1e-4)
for step in range(900):
    x = points[torch.randint(len(points), (256,))]
    t = torch.randint(T, (256,))
    noise = torch.randn_like(x)
    dirty = kept[t].sqrt()[:, None] * x + (1 - kept[t]).sqrt()[:, None] * noise
    loss = (model(dirty, t) - noise).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    with torch.no_grad():
        for slow, fast in zip(average.parameters(), model.parameters(), strict=False):
            slow.lerp_(fast, 0.02)
with torch.no_grad():
    x = torch.randn(600, 2)
    for t in reversed(range(T)):
        guess = average(x, torch.full((600,), t))
        x = (x - beta[t] / (1 - kept[t]).sqrt() * guess) / (1 - beta[t]).sqrt()
        x = x + (beta[t].sqrt() * torch.randn_like(x) if t else 0)
    distance = torch.cdist(x, points).min(1).values.mean()
print(f"loss {loss.item():.3f}, distance of samples to the data {distance:.3f}")
