"""A generative adversarial pair for two-dimensional pulses (height and length), with an optimizer
for each.

Neither loss falls: they stay around ln 2 and 2 ln 2, as they should when the two are matched. The
discriminator's loss sees detached samples; the generator's runs through a discriminator that isn't
stepped. The energy distance tells.
"""

import torch
from data import arguments
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits as bce

ODD = "both losses are flat all along; one of them is computed on detached outputs; betas of 0.5"

_, seed = arguments(__doc__)


def pulses(n, g):
    kind = (torch.rand(n, generator=g) < 0.4).float()
    height = torch.where(kind > 0, 1.2, -0.8) + 0.3 * torch.randn(n, generator=g)
    length = torch.where(kind > 0, -0.6, 0.4) + 0.5 * height + 0.2 * torch.randn(n, generator=g)
    return torch.stack([height, length], 1)


g = torch.Generator().manual_seed(seed)
real, held_out = pulses(6000, g), pulses(1000, g)
NOISE = 4
generator = nn.Sequential(
    nn.Linear(NOISE, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 2)
)
discriminator = nn.Sequential(
    nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1)
)
opt_g = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.99))
opt_d = torch.optim.Adam(discriminator.parameters(), lr=1e-3, betas=(0.5, 0.99))
schedules = [
    torch.optim.lr_scheduler.LinearLR(opt, 1.0, 0.05, total_iters=1200) for opt in (opt_g, opt_d)
]


@torch.no_grad()
def energy_distance():
    generator.eval()
    fake = generator(torch.randn(1000, NOISE))
    generator.train()
    between = torch.cdist(fake, held_out).mean()
    return (
        2 * between - torch.cdist(fake, fake).mean() - torch.cdist(held_out, held_out).mean()
    ).item()


ones, zeros = torch.ones(128, 1), torch.zeros(128, 1)
for step in range(1, 1201):
    batch = real[torch.randint(len(real), (128,), generator=g)]
    fake = generator(torch.randn(128, NOISE))
    loss_d = bce(discriminator(batch), 0.9 * ones) + bce(discriminator(fake.detach()), zeros)
    opt_d.zero_grad()
    loss_d.backward()
    opt_d.step()

    loss_g = bce(discriminator(fake), ones)
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
    for schedule in schedules:
        schedule.step()
    if step % 150 == 0:
        print(
            f"step {step} discriminator {loss_d.item():.3f} generator {loss_g.item():.3f} "
            f"energy distance {energy_distance():.4f}"
        )
