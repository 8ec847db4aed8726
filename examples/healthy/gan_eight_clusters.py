"""A small GAN draws points on a ring of eight clusters; neither of its losses goes to zero.

The generator's loss rises, and then both stay about log 2, as the two play against each other. What
counts is the quality of the samples, which improves: four in five lie on a cluster and all eight
are found.
"""

import math

import torch
from data import arguments
from torch import nn

ODD = "both losses hover around log 2 and do not fall: the balance of a GAN; its samples improve"
_, seed = arguments(__doc__)

CLUSTERS, SPREAD, NOISE = 8, 0.08, 6
STEPS, BATCH = 1500, 256


def real_points(count):
    angle = torch.randint(0, CLUSTERS, (count,)) * (2 * math.pi / CLUSTERS)
    return torch.stack([angle.cos(), angle.sin()], 1) * 1.4 + SPREAD * torch.randn(count, 2)


def network(inputs, outputs, width=64):
    return nn.Sequential(
        nn.Linear(inputs, width),
        nn.LeakyReLU(0.2),
        nn.Linear(width, width),
        nn.LeakyReLU(0.2),
        nn.Linear(width, outputs),
    )


@torch.no_grad()
def quality(generator):
    """The share of samples near a cluster, and how many clusters get their share of samples."""
    generator.eval()
    samples = generator(torch.randn(2000, NOISE))
    generator.train()
    angle = torch.arange(CLUSTERS) * (2 * math.pi / CLUSTERS)
    centres = torch.stack([angle.cos(), angle.sin()], 1) * 1.4
    distance, nearest = torch.cdist(samples, centres).min(1)
    near = distance < 4 * SPREAD
    found = torch.bincount(nearest[near], minlength=CLUSTERS) > 2000 / CLUSTERS / 5
    return near.float().mean().item(), int(found.sum())


def main():
    generator, discriminator = network(NOISE, 2), network(2, 1)
    optimizer_g = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.99))
    optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=1e-3, betas=(0.5, 0.99))
    criterion = nn.BCEWithLogitsLoss()
    true, false = torch.ones(BATCH, 1), torch.zeros(BATCH, 1)
    for step in range(1, STEPS + 1):
        real = real_points(BATCH)
        fake = generator(torch.randn(BATCH, NOISE))
        loss_d = criterion(discriminator(real), true)
        loss_d = loss_d + criterion(discriminator(fake.detach()), false)
        optimizer_d.zero_grad()
        loss_d.backward()
        optimizer_d.step()

        loss_g = criterion(discriminator(fake), true)
        optimizer_g.zero_grad()
        loss_g.backward()
        optimizer_g.step()
        if step % 150 == 0:
            near, found = quality(generator)
            print(
                f"[{step}/{STEPS}] Loss_D {loss_d.item() / 2:.3f} Loss_G {loss_g.item():.3f} "
                f"near a cluster {near:.2f}, clusters found {found}/8"
            )


main()
