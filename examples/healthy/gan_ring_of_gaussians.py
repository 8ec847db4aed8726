"""A GAN learns five Gaussian spots on a circle.

Neither loss falls: both networks keep each other at a balance. The samples say whether it learned.
"""

import math

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = (
    "the losses don't fall, two optimizers, detached samples, generator gradients cleared without "
    "use"
)

_, seed = arguments(__doc__)
angles = torch.arange(5) * 2 * math.pi / 5
centres = torch.stack([angles.cos(), angles.sin()], 1) * 1.4


def real(n):
    return centres[torch.randint(0, 5, (n,))] + 0.15 * torch.randn(n, 2)


def mlp(inputs, outputs, act):
    return nn.Sequential(
        nn.Linear(inputs, 96), act(), nn.Linear(96, 96), act(), nn.Linear(96, outputs)
    )


generator = mlp(4, 2, nn.ReLU)
discriminator = mlp(2, 1, lambda: nn.LeakyReLU(0.2))
opt_g = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.0, 0.99))
opt_d = torch.optim.Adam(discriminator.parameters(), lr=2e-3, betas=(0.0, 0.99))
batch, steps = 128, 1200
decay = [torch.optim.lr_scheduler.LinearLR(o, 1.0, 0.1, total_iters=steps) for o in (opt_g, opt_d)]

for step in range(1, steps + 1):
    x = real(batch)
    fake = generator(torch.randn(batch, 4))
    d_real, d_fake = discriminator(x), discriminator(fake.detach())
    d_loss = F.softplus(-d_real).mean() + F.softplus(d_fake).mean()
    opt_d.zero_grad()
    d_loss.backward()
    opt_d.step()

    g_loss = F.softplus(-discriminator(fake)).mean()
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()
    for schedule in decay:
        schedule.step()

    if step % 200 == 0:
        with torch.no_grad():
            samples = generator(torch.randn(1000, 4))
        distance, nearest = torch.cdist(samples, centres).min(1)
        good = distance < 0.5
        spots = (torch.bincount(nearest[good], minlength=5) > 50).sum().item()
        print(
            f"step {step}: d {d_loss:.3f}, g {g_loss:.3f}, on a spot {good.float().mean():.3f}, "
            f"spots {spots}/5"
        )
