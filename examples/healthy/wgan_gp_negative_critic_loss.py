"""A Wasserstein GAN with gradient penalty on a noisy ring."""

import math

import torch
from data import arguments
from torch import autograd, nn

ODD = "the critic's loss is negative and shrinks towards 0, the generator's has no trend or sense"

_, seed = arguments(__doc__)


def real_points(n):
    angle = torch.rand(n) * 2 * math.pi
    return 1.4 * torch.stack([angle.cos(), angle.sin()], 1) + 0.08 * torch.randn(n, 2)


def mlp(a, b):
    return nn.Sequential(
        nn.Linear(a, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, b)
    )


generator, critic = mlp(4, 2), mlp(2, 1)
g_opt = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.0, 0.9))
c_opt = torch.optim.Adam(critic.parameters(), lr=2e-3, betas=(0.0, 0.9))
for step in range(350):
    for _ in range(3):
        real, fake = real_points(128), generator(torch.randn(128, 4)).detach()
        mix = torch.rand(128, 1)
        between = (mix * real + (1 - mix) * fake).requires_grad_()
        (slope,) = autograd.grad(critic(between).sum(), between, create_graph=True)
        penalty = (slope.norm(dim=1) - 1).square().mean()
        c_loss = critic(fake).mean() - critic(real).mean() + 2 * penalty
        c_opt.zero_grad()
        c_loss.backward()
        c_opt.step()
    g_loss = -critic(generator(torch.randn(128, 4))).mean()
    g_opt.zero_grad()
    g_loss.backward()
    g_opt.step()
with torch.no_grad():
    made = generator(torch.randn(1000, 4))
    radius = made.norm(dim=1)
    nearest = torch.cdist(made, real_points(2000)).min(1).values.mean()
print(f"critic {c_loss.item():.3f}, radius {radius.mean():.2f}, distance to the data {nearest:.3f}")
