"""A GAN learns a ring of bells; the generator's loss rises and stays up, with good samples.

Generator and discriminator play against each other: the two losses say who is ahead for the moment.
What counts are the samples, which cover all the bells and mostly lie on them.
"""

import math

import torch
from data import arguments
from torch import nn

ODD = (
    "the generator's loss rises and then both losses lie still while the samples get better: "
    "a game between two networks has no loss to bring down"
)
_, seed = arguments(__doc__)

LATENT = 8
BATCH = 128
STEPS = 2000
BELLS = 8


def real_samples(n):
    angle = torch.randint(0, BELLS, (n,)) * (2 * math.pi / BELLS)
    centre = torch.stack([angle.cos(), angle.sin()], 1) * 1.4
    return centre + 0.12 * torch.randn(n, 2)


class Generator(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(LATENT, width),
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

    def forward(self, point):
        return self.net(point)


def quality(points):
    """How many bells have their share of the samples, and how many samples lie on a bell."""
    angle = torch.arange(BELLS) * (2 * math.pi / BELLS)
    centres = torch.stack([angle.cos(), angle.sin()], 1) * 1.4
    distance, nearest = torch.cdist(points, centres).min(1)
    near = distance < 0.4
    share = torch.bincount(nearest[near], minlength=BELLS) / len(points)
    return int((share > 0.25 / BELLS).sum()), near.float().mean().item()


net_g, net_d = Generator(), Discriminator()
criterion = nn.BCEWithLogitsLoss()
optimizer_d = torch.optim.Adam(net_d.parameters(), lr=1e-3, betas=(0.5, 0.999))
optimizer_g = torch.optim.Adam(net_g.parameters(), lr=1e-3, betas=(0.5, 0.999))
real_label, fake_label = torch.ones(BATCH, 1), torch.zeros(BATCH, 1)
fixed_noise = torch.randn(1000, LATENT)
mean_d = mean_g = math.log(2)

for step in range(1, STEPS + 1):
    net_d.zero_grad()
    real = real_samples(BATCH)
    fake = net_g(torch.randn(BATCH, LATENT))
    err_d = criterion(net_d(real), real_label) + criterion(net_d(fake.detach()), fake_label)
    err_d.backward()
    optimizer_d.step()

    net_g.zero_grad()
    err_g = criterion(net_d(fake), real_label)
    err_g.backward()
    optimizer_g.step()

    mean_d = 0.99 * mean_d + 0.005 * err_d.item()
    mean_g = 0.99 * mean_g + 0.01 * err_g.item()
    if step % 200 == 0:
        with torch.no_grad():
            bells, on_bell = quality(net_g(fixed_noise))
        print(
            f"[{step}/{STEPS}] Loss_D: {mean_d:.4f} Loss_G: {mean_g:.4f} "
            f"bells found: {bells}/{BELLS}, samples on a bell: {on_bell:.1%}"
        )
