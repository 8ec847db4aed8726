"""A Wasserstein GAN with gradient penalty on a ring of eight spots and its radius: losses that
never settle.

The critic's loss is negative and hovers; it takes four steps for each of the generator's; Adam runs
with beta1 = 0 as in the paper. The generator's output is judged by the energy distance to held-out
points.
"""

import math

import torch
from data import arguments
from torch import nn

ODD = "negative losses that do not fall, two optimizers, four critic steps to one, beta1 = 0"

_, seed = arguments(__doc__)
NOISE, BATCH = 4, 128


def spots(n: int, g):
    k = torch.randint(0, 8, (n,), generator=g)
    a = k * math.pi / 4
    return torch.stack([a.cos(), a.sin()], 1) * 1.4 + 0.08 * torch.randn(n, 2, generator=g)


def mlp(inputs: int, outputs: int, width: int = 96):
    return nn.Sequential(
        nn.Linear(inputs, width),
        nn.LeakyReLU(0.2),
        nn.Linear(width, width),
        nn.LeakyReLU(0.2),
        nn.Linear(width, outputs),
    )


def penalty(critic, real, fake):
    mix = torch.rand(len(real), 1)
    between = (mix * real + (1 - mix) * fake).requires_grad_(True)
    slope = torch.autograd.grad(critic(between).sum(), between, create_graph=True)[0]
    return (slope.norm(dim=1) - 1).square().mean()


@torch.no_grad()
def energy_distance(a, b):
    return (
        2 * torch.cdist(a, b).mean() - torch.cdist(a, a).mean() - torch.cdist(b, b).mean()
    ).item()


def draw(generator, n: int):
    return generator(torch.randn(n, NOISE))


g = torch.Generator().manual_seed(400 + seed)
train, held = spots(8000, g), spots(1500, g)
generator, critic = mlp(NOISE, 2), mlp(2, 1)
of_generator = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.0, 0.9))
of_critic = torch.optim.Adam(critic.parameters(), lr=2e-3, betas=(0.0, 0.9))
schedules = [
    torch.optim.lr_scheduler.LinearLR(o, 1.0, 0.1, total_iters=300)
    for o in (of_generator, of_critic)
]

for update in range(300):
    generator.train(), critic.train()
    for _ in range(4):
        real = train[torch.randint(0, len(train), (BATCH,))]
        with torch.no_grad():
            fake = draw(generator, BATCH)
        critic_loss = critic(fake).mean() - critic(real).mean() + 2 * penalty(critic, real, fake)
        of_critic.zero_grad()
        critic_loss.backward()
        of_critic.step()
    critic.requires_grad_(False)
    generator_loss = -critic(draw(generator, BATCH)).mean()
    of_generator.zero_grad()
    generator_loss.backward()
    of_generator.step()
    critic.requires_grad_(True)
    for schedule in schedules:
        schedule.step()
    if update % 60 == 59:
        generator.eval()
        with torch.no_grad():
            off = energy_distance(draw(generator, 1500), held)
        print(
            f"update {update + 1}: critic {critic_loss.item():.4f}, "
            f"generator {generator_loss.item():.4f}, validation {off:.4f}"
        )
print(
    f"validation energy distance {off:.4f} "
    f"(of two true samples: {energy_distance(train[:1500], held):.4f})"
)
