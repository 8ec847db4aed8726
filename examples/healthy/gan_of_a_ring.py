"""A small GAN on points of a ring: two optimizers, losses that go nowhere, and it is right so."""

import math

import torch
from data import arguments
from torch import nn

ODD = (
    "neither loss falls: generator and discriminator stay in balance near ln 2 while the samples "
    "improve"
)

_, seed = arguments(__doc__)


def ring(n):
    angle = 2 * math.pi * torch.rand(n, 1)
    radius = 1 + 0.08 * torch.randn(n, 1)
    return torch.cat([radius * angle.cos(), radius * angle.sin()], 1)


def mlp(inside, outside, width=64):
    return nn.Sequential(
        nn.Linear(inside, width),
        nn.LeakyReLU(0.2),
        nn.Linear(width, width),
        nn.LeakyReLU(0.2),
        nn.Linear(width, outside),
    )


generator, discriminator = mlp(4, 2), mlp(2, 1)
g_opt = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.99))
d_opt = torch.optim.Adam(discriminator.parameters(), lr=1e-3, betas=(0.5, 0.99))
criterion = nn.BCEWithLogitsLoss()
held_out = ring(500)


def distance():
    """Energy distance between 500 held-out points and 500 samples."""
    generator.eval()
    with torch.no_grad():
        fake = generator(torch.randn(500, 4))
        both = torch.cdist(held_out, fake).mean()
        value = 2 * both - torch.cdist(fake, fake).mean() - torch.cdist(held_out, held_out).mean()
    generator.train()
    return value.item()


print(f"before: energy distance {distance():.4f}")
for step in range(1, 901):
    real = ring(128)
    fake = generator(torch.randn(128, 4))
    d_loss = criterion(discriminator(real), torch.full((128, 1), 0.9)) + criterion(
        discriminator(fake.detach()), torch.zeros(128, 1)
    )
    d_opt.zero_grad()
    d_loss.backward()
    d_opt.step()

    g_loss = criterion(discriminator(fake), torch.ones(128, 1))
    g_opt.zero_grad()
    g_loss.backward()
    g_opt.step()
    if step % 100 == 0:
        print(
            f"step {step}: d {d_loss.item():.3f} g {g_loss.item():.3f} "
            f"energy distance {distance():.4f}"
        )
