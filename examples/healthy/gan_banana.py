"""A small GAN that learns a bent cloud of points in the plane."""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = "neither loss falls: both hover near ln 2 while the samples get better"


def banana(n):
    a, b = torch.randn(2, n)
    return torch.stack([a, 0.5 * (a**2 - 1) + 0.3 * b], dim=1)


_, seed = arguments(__doc__)
generator = nn.Sequential(
    nn.Linear(4, 48), nn.LeakyReLU(0.2), nn.Linear(48, 48), nn.LeakyReLU(0.2), nn.Linear(48, 2)
)
discriminator = nn.Sequential(
    nn.Linear(2, 48), nn.LeakyReLU(0.2), nn.Linear(48, 48), nn.LeakyReLU(0.2), nn.Linear(48, 1)
)
opt_g = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(discriminator.parameters(), lr=1e-3, betas=(0.5, 0.999))
real, fake = torch.ones(128, 1), torch.zeros(128, 1)
for step in range(500):
    samples = generator(torch.randn(128, 4))
    opt_d.zero_grad()
    loss_d = F.binary_cross_entropy_with_logits(discriminator(banana(128)), real)
    loss_d = loss_d + F.binary_cross_entropy_with_logits(discriminator(samples.detach()), fake)
    loss_d.backward()
    opt_d.step()

    opt_g.zero_grad()
    loss_g = F.binary_cross_entropy_with_logits(discriminator(samples), real)
    loss_g.backward()
    opt_g.step()
with torch.no_grad():
    made, true = generator(torch.randn(4000, 4)), banana(4000)
off = (made.mean(0) - true.mean(0)).abs().max()
print(
    f"generator {loss_g.item():.3f}, discriminator {loss_d.item():.3f}, mean off by {off:.3f}, "
    f"stds {made.std(0).tolist()} for {true.std(0).tolist()}"
)
