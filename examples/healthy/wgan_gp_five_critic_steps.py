"""A WGAN-GP on two-dimensional ring data: the losses are negative, don't fall, and the critic's
gradients pile up between steps.

It looks odd because the critic's loss is an estimated distance (negative, hardly moving after the
start), the generator's loss wanders with no floor, the generator gets one step for five of the
critic's, its backward pass also fills the critic's `.grad` (cleared before the critic's next
step), and the gradient penalty goes backward through gradients. All of it is as in the paper, and
the samples come close to the data and stay there.
"""

import copy
import math

import torch
from data import arguments
from torch import nn

ODD = "losses are negative and do not fall, and the critic's gradients pile up between steps"
_, seed = arguments(__doc__)


def rings(n, generator=None):
    """Two rings, the inner one denser, with some width."""
    which = (torch.rand(n, generator=generator) < 0.4).float()
    radius = 1.6 - which + 0.07 * torch.randn(n, generator=generator)
    angle = 2 * math.pi * torch.rand(n, generator=generator)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], 1)


def mlp(i, o, width=64):
    return nn.Sequential(
        nn.Linear(i, width),
        nn.LeakyReLU(0.2),
        nn.Linear(width, width),
        nn.LeakyReLU(0.2),
        nn.Linear(width, width),
        nn.LeakyReLU(0.2),
        nn.Linear(width, o),
    )


def penalty(critic, real, fake):
    mix = torch.rand(len(real), 1)
    between = (mix * real + (1 - mix) * fake).requires_grad_()
    (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    return (slope.norm(2, dim=1) - 1).pow(2).mean()


@torch.no_grad()
def energy_distance(generator, real):
    fake = generator(torch.randn(len(real), 4))
    return (
        2 * torch.cdist(real, fake).mean()
        - torch.cdist(real, real).mean()
        - torch.cdist(fake, fake).mean()
    ).item()


generator, critic = mlp(4, 2), mlp(2, 1)
average = copy.deepcopy(generator).requires_grad_(False)  # the generator that is used in the end
opt_g = torch.optim.Adam(generator.parameters(), lr=3e-4, betas=(0.5, 0.9))
opt_c = torch.optim.Adam(critic.parameters(), lr=1.5e-3, betas=(0.5, 0.9))
held_out = rings(1000, torch.Generator().manual_seed(seed + 1))
steps, batch = 600, 256
decay = [torch.optim.lr_scheduler.LinearLR(o, 1.0, 0.02, total_iters=steps) for o in (opt_g, opt_c)]
for step in range(steps):
    for _ in range(5):
        real = rings(batch)
        with torch.no_grad():
            fake = generator(torch.randn(batch, 4))
        loss_c = critic(fake).mean() - critic(real).mean() + 0.3 * penalty(critic, real, fake)
        opt_c.zero_grad()
        loss_c.backward()
        opt_c.step()
    loss_g = -critic(generator(torch.randn(batch, 4))).mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
    with torch.no_grad():
        for slow, fast in zip(average.parameters(), generator.parameters(), strict=True):
            slow.lerp_(fast, 0.02)
    for d in decay:
        d.step()
    if step % 100 == 99:
        print(
            f"step {step + 1}: critic {loss_c.item():.3f}, generator {loss_g.item():.3f}, energy distance {energy_distance(average, held_out):.4f}"  # noqa: E501
        )
