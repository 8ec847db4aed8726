"""A GAN draws wind vectors of a site with five prevailing directions.

Non-saturating loss, Adam with beta1 of 0.5, one-sided label smoothing, a little noise on what the
discriminator sees. Its loss stays near 2 ln 2 and the generator's near ln 2 when all is well.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

ODD = "neither loss falls: they settle at an equilibrium, and the generator's rises at first"

_, seed = arguments(__doc__)
DIRECTIONS, NOISE = 5, 8
ANGLES = torch.arange(DIRECTIONS) * 2 * math.pi / DIRECTIONS
CENTRES = torch.stack([ANGLES.cos(), ANGLES.sin()], 1) * 1.3


def winds(n):
    mode = torch.randint(0, DIRECTIONS, (n,))
    return CENTRES[mode] + 0.25 * torch.randn(n, 2)


class Generator(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(NOISE, width),
            nn.LeakyReLU(0.2),
            nn.Linear(width, width),
            nn.LeakyReLU(0.2),
            nn.Linear(width, 2),
        )

    def forward(self, z):
        return self.net(z)


class Discriminator(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, width),
            nn.LeakyReLU(0.2),
            nn.Linear(width, width),
            nn.LeakyReLU(0.2),
            nn.Linear(width, 1),
        )

    def forward(self, x):
        return self.net(x).squeeze(1)


def blur(x):
    return x + 0.05 * torch.randn_like(x)


loader = DataLoader(TensorDataset(winds(6400)), batch_size=128, shuffle=True, drop_last=True)
generator, discriminator = Generator(), Discriminator()
g_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.999))
d_optimizer = torch.optim.Adam(discriminator.parameters(), lr=3e-3, betas=(0.5, 0.999))

schedulers = [
    torch.optim.lr_scheduler.LinearLR(o, 1.0, 0.1, 25) for o in (g_optimizer, d_optimizer)
]

for epoch in range(25):
    generator.train(), discriminator.train()
    d_total = g_total = 0.0
    for (real,) in loader:
        fake = generator(torch.randn(len(real), NOISE))

        d_real, d_fake = discriminator(blur(real)), discriminator(blur(fake.detach()))
        d_loss = F.binary_cross_entropy_with_logits(d_real, torch.full_like(d_real, 0.9))
        d_loss = d_loss + F.binary_cross_entropy_with_logits(d_fake, torch.zeros_like(d_fake))
        d_optimizer.zero_grad()
        d_loss.backward()
        d_optimizer.step()

        d_fake = discriminator(blur(fake))
        g_loss = F.binary_cross_entropy_with_logits(d_fake, torch.ones_like(d_fake))
        g_optimizer.zero_grad()
        g_loss.backward()
        g_optimizer.step()
        d_total += d_loss.item() / len(loader)
        g_total += g_loss.item() / len(loader)

    for scheduler in schedulers:
        scheduler.step()
    generator.eval()
    with torch.no_grad():
        drawn = generator(torch.randn(1000, NOISE))
    distance, nearest = torch.cdist(drawn, CENTRES).min(1)
    share = torch.bincount(nearest, minlength=DIRECTIONS) / 1000
    close = (distance < 0.75).float().mean()
    print(
        f"epoch {epoch:2d} D {d_total:.3f} G {g_total:.3f} on a mode {close:.2f} "
        f"shares {' '.join(f'{s:.2f}' for s in share)}"
    )
