"""Wasserstein GAN of moons: the critic's loss is negative from the start and comes up towards
zero, and the generator's has no trend.

The person sees losses below zero, one of which grows all the time, and asks what is broken. The
critic's loss is minus the distance between the two distributions plus a penalty, so that is the
success.
"""

import numpy as np
import torch
from data import arguments
from sklearn.datasets import make_moons
from torch import nn

ODD = (
    "the critic's loss is below zero and rises, the generator's wanders: the first is minus the"
    " Wasserstein distance, which shrinks as samples get better; the second has no fixed zero"
)
_, seed = arguments(__doc__)

NOISE, CRITIC_STEPS, PENALTY = 4, 5, 0.1


def mlp(inputs, outputs, width=64):
    return nn.Sequential(
        nn.Linear(inputs, width),
        nn.LeakyReLU(0.2),
        nn.Linear(width, width),
        nn.LeakyReLU(0.2),
        nn.Linear(width, outputs),
    )


def gradient_penalty(critic, real, fake):
    share = torch.rand(len(real), 1)
    between = (share * real + (1 - share) * fake).requires_grad_(True)
    slope = torch.autograd.grad(critic(between).sum(), between, create_graph=True)[0]
    return ((slope.pow(2).sum(1) + 1e-12).sqrt() - 1).pow(2).mean()


def distance_to_data(generator, points, count=500):
    """Mean distance of generated points to the nearest real one, and of real to generated."""
    generator.eval()
    with torch.no_grad():
        distances = torch.cdist(generator(torch.randn(count, NOISE)), points)
    generator.train()
    return distances.min(1).values.mean().item(), distances.min(0).values.mean().item()


def main():
    points, _ = make_moons(2000, noise=0.06, random_state=seed)
    points = torch.tensor((points - points.mean(0)) / points.std(0), dtype=torch.float32)
    generator, critic = mlp(NOISE, 2), mlp(2, 1)
    optimizer_g = torch.optim.Adam(generator.parameters(), lr=3e-4, betas=(0.5, 0.9))
    optimizer_c = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.9))
    log = []
    for step in range(1, 701):
        for _ in range(CRITIC_STEPS):
            real = points[torch.randint(0, len(points), (96,))]
            with torch.no_grad():
                fake = generator(torch.randn(96, NOISE))
            loss_c = critic(fake).mean() - critic(real).mean()
            loss_c = loss_c + PENALTY * gradient_penalty(critic, real, fake)
            optimizer_c.zero_grad()
            loss_c.backward()
            optimizer_c.step()
        loss_g = -critic(generator(torch.randn(96, NOISE))).mean()
        optimizer_g.zero_grad()
        loss_g.backward()
        optimizer_g.step()
        log.append((loss_c.item(), loss_g.item()))
        if step % 100 == 0 or step == 20:
            mean_c, mean_g = np.mean(log[-50:], axis=0)
            off, missed = distance_to_data(generator, points)
            print(
                f"step {step:4d}  critic {mean_c:+.4f}  generator {mean_g:+.4f}"
                f"  off the data {off:.3f}  data missed by {missed:.3f}"
            )


if __name__ == "__main__":
    main()
