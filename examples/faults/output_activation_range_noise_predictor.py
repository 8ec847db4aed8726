"""A diffusion model of points on two moons is trained to foresee the noise that was added. The
network was made from an old GAN generator and still ends in Tanh.

The noise is normal, so a third of all targets lie beyond what the output can reach; the loss stops
well above what it could be, and the samples spread. The place is the last layer.
"""

import math

import torch
from data import arguments
from sklearn.datasets import make_moons
from torch import nn

KIND = "output_activation_range"
ACCEPT = ()
PLACE = ("net*", "loss")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
STEPS = 50
betas = torch.linspace(1e-3, 0.2, STEPS)
kept = torch.cumprod(1 - betas, 0)


class Denoiser(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        layers = [
            nn.Linear(2 + 16, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, 2),
        ]
        if not healthy:
            layers.append(nn.Tanh())
        self.net = nn.Sequential(*layers)
        self.register_buffer("speed", torch.exp(torch.linspace(0, math.log(50.0), 8)) / 50)

    def forward(self, x, t):
        angle = t[:, None] * self.speed
        return self.net(torch.cat([x, angle.sin(), angle.cos()], 1))


def noised(x, g=None):
    t = torch.randint(0, STEPS, (len(x),), generator=g)
    noise = torch.randn(x.shape, generator=g)
    return kept[t, None].sqrt() * x + (1 - kept[t, None]).sqrt() * noise, t.float(), noise


@torch.no_grad()
def sample(model, n):
    x = torch.randn(n, 2)
    for t in reversed(range(STEPS)):
        noise = model(x, torch.full((n,), float(t)))
        x = (x - betas[t] / (1 - kept[t]).sqrt() * noise) / (1 - betas[t]).sqrt()
        if t:
            x = x + betas[t].sqrt() * torch.randn_like(x)
    return x


def away(points, data):
    """The mean distance of a sample to the nearest point of the data."""
    return torch.cdist(points, data).amin(1).mean().item()


moons = torch.tensor(make_moons(3000, noise=0.04, random_state=seed)[0], dtype=torch.float32)
moons = (moons - moons.mean(0)) / moons.std(0)
x, x_val = moons[:2400], moons[2400:]
fixed = torch.Generator().manual_seed(9)
seen, at, truth = noised(x_val.repeat(5, 1), fixed)
model = Denoiser()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1200)
recent = []
for step in range(1, 1201):
    noisy, t, noise = noised(x[torch.randint(0, len(x), (128,))])
    loss = (model(noisy, t) - noise).pow(2).mean()
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    schedule.step()
    recent.append(loss.item())
    if step % 120 == 0:
        with torch.no_grad():
            val = (model(seen, at) - truth).pow(2).mean().item()
        print(f"step {step} train {sum(recent[-120:]) / 120:.4f} val {val:.4f}")
print(f"samples are {away(sample(model, 500), x_val):.4f} away from the moons")
