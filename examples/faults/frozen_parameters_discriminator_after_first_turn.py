"""A GAN for a ring of eight spots; the discriminator is frozen while the generator learns.

Fault: `requires_grad_(True)` before the discriminator's own turn was lost when the two turns
became functions: it never learns again after the generator's first step. The place is the
discriminator. The generator's loss falls quickly; what it makes has nothing of the ring. Exact.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F

KIND = "frozen_parameters"
ACCEPT = ("detached_graph", "detached_loss", "step_without_gradient")
PLACE = ("discriminator*", "", "loop", "body*", "net*", "0", "2", "4")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def real(n):
    angle = torch.randint(0, 8, (n,)) * math.pi / 4
    return torch.stack([angle.cos(), angle.sin()], 1) * 1.5 + 0.08 * torch.randn(n, 2)


def mlp(n_in, n_out):
    return nn.Sequential(
        nn.Linear(n_in, 64),
        nn.LeakyReLU(0.2),
        nn.Linear(64, 64),
        nn.LeakyReLU(0.2),
        nn.Linear(64, n_out),
    )


generator, discriminator = mlp(4, 2), mlp(2, 1)
opt_g = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.99))
opt_d = torch.optim.Adam(discriminator.parameters(), lr=2e-3, betas=(0.5, 0.99))


def turn_of_discriminator(x):
    if healthy:
        discriminator.requires_grad_(True)
    fake = generator(torch.randn(len(x), 4))
    loss = F.softplus(-discriminator(x)).mean() + F.softplus(discriminator(fake)).mean()
    opt_d.zero_grad()
    loss.backward()
    opt_d.step()
    return loss.item()


def turn_of_generator(n):
    discriminator.requires_grad_(False)
    loss = F.softplus(-discriminator(generator(torch.randn(n, 4)))).mean()
    opt_g.zero_grad()
    loss.backward()
    opt_g.step()
    return loss.item()


@torch.no_grad()
def distance(n=1000):
    """Energy distance between made and real points."""
    a, b, a2, b2 = real(n), generator(torch.randn(n, 4)), real(n), generator(torch.randn(n, 4))
    return (
        2 * torch.cdist(a, b).mean() - torch.cdist(a, a2).mean() - torch.cdist(b, b2).mean()
    ).item()


for step in range(1, 501):
    d_loss = turn_of_discriminator(real(96))
    g_loss = turn_of_generator(96)
    if step % 100 == 0:
        print(f"step {step}: D {d_loss:.3f}, G {g_loss:.3f}, energy distance {distance():.4f}")
print(f"loss {g_loss:.4f} | validation energy distance {distance():.4f}")
