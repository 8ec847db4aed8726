"""A small GAN that learns points on two rings, with hinge loss and two time scales (TTUR).

Neither loss falls and both wander: the two players are matched. What counts is the distance
between the generator's points and the true ones, which does fall. The discriminator's gradients
are kept out of the generator by detach, and Adam runs without momentum, as Miyato et al. do.
"""

import torch
from data import arguments
from torch import nn

ODD = "adversarial losses that do not fall, detached generator samples, beta1 = 0, two optimizers"

_, seed = arguments(__doc__)


def real(n):
    angle = torch.rand(n) * 6.283
    radius = torch.tensor([0.6, 1.4])[torch.randint(0, 2, (n,))] + 0.05 * torch.randn(n)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], 1)


def energy_distance(a, b):
    return (
        2 * torch.cdist(a, b).mean() - torch.cdist(a, a).mean() - torch.cdist(b, b).mean()
    ).item()


generator = nn.Sequential(
    nn.Linear(8, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 2)
)
sn = nn.utils.parametrizations.spectral_norm
discriminator = nn.Sequential(
    sn(nn.Linear(2, 64)),
    nn.LeakyReLU(0.2),
    sn(nn.Linear(64, 64)),
    nn.LeakyReLU(0.2),
    nn.Linear(64, 1),
)
g_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.0, 0.9))
d_optimizer = torch.optim.Adam(discriminator.parameters(), lr=2e-3, betas=(0.0, 0.9))
held_out = real(800)

decay = [
    torch.optim.lr_scheduler.LinearLR(o, 1.0, 0.05, total_iters=900)
    for o in (g_optimizer, d_optimizer)
]
for step in range(1, 901):
    generator.train(), discriminator.train()
    fake = generator(torch.randn(128, 8))
    d_loss = (
        torch.relu(1 - discriminator(real(128))).mean()
        + torch.relu(1 + discriminator(fake.detach())).mean()
    )
    d_optimizer.zero_grad()
    d_loss.backward()
    d_optimizer.step()

    g_loss = -discriminator(generator(torch.randn(128, 8))).mean()
    g_optimizer.zero_grad()
    g_loss.backward()
    g_optimizer.step()
    for scheduler in decay:
        scheduler.step()
    if step % 100 == 0:
        generator.eval()
        with torch.no_grad():
            distance = energy_distance(generator(torch.randn(800, 8)), held_out)
        print(
            f"step {step} d {d_loss.item():.3f} g {g_loss.item():.3f} "
            f"energy distance {distance:.4f}"
        )
