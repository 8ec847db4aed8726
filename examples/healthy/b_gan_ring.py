"""A small GAN draws points on a ring of eight heaps.

Neither loss falls for long, the critic's gradients from the generator's backward pass are thrown
away unused, and the discriminator is right a little more than half of the time: all as it should
be.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F

ODD = "neither loss falls for long; gradients of the critic are thrown away"

_, seed = arguments(__doc__)


def real(n):
    a = torch.randint(0, 8, (n,)) * math.pi / 4
    return torch.stack([a.cos(), a.sin()], 1) + 0.1 * torch.randn(n, 2)


def net(i, o, act):
    return nn.Sequential(nn.Linear(i, 64), act(), nn.Linear(64, 64), act(), nn.Linear(64, o))


generator = net(4, 2, nn.ReLU)
critic = net(2, 1, lambda: nn.LeakyReLU(0.2))
g_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.9))
c_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.9))
softplus = F.softplus
for step in range(700):
    x = real(128).requires_grad_(True)
    fake = generator(torch.randn(128, 4)).detach()
    score = critic(x)
    (slope,) = torch.autograd.grad(score.sum(), x, create_graph=True)
    c_loss = (
        softplus(-score).mean() + softplus(critic(fake)).mean() + 0.05 * slope.pow(2).sum(1).mean()
    )
    c_optimizer.zero_grad()
    c_loss.backward()
    c_optimizer.step()

    g_loss = softplus(-critic(generator(torch.randn(128, 4)))).mean()
    g_optimizer.zero_grad()
    g_loss.backward()
    g_optimizer.step()
    if step % 100 == 99:
        with torch.no_grad():
            made = generator(torch.randn(2000, 4))
        angle = torch.atan2(made[:, 1], made[:, 0]).div(math.pi / 4).round() % 8
        heaps = (torch.bincount(angle.long(), minlength=8) > 60).sum().item()
        off = (made.norm(dim=1) - 1).abs().mean().item()
        print(
            f"step {step + 1}: critic {c_loss.item():.3f} generator {g_loss.item():.3f}"
            f" heaps {heaps} off the ring {off:.3f}"
        )
