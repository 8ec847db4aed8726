"""A generator that gives one point for all noise: that is multiplied by 0.001 ("small noise is
stable").

All samples are nearly the same point; the losses go on as in any GAN (silent). The place is the
generator.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "representation_collapse"
ACCEPT = ("posterior_collapse",)
PLACE = ("*", "")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
scale = 1.0 if healthy else 1e-3


def real(n):
    angle = torch.rand(n) * 6.2832
    return torch.stack([2 * angle.cos(), angle.sin()], 1) + 0.05 * torch.randn(n, 2)


def noise(n):
    return scale * torch.randn(n, 4)


generator = nn.Sequential(
    nn.Linear(4, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 2)
)
critic = nn.Sequential(
    nn.Linear(2, 48), nn.LeakyReLU(0.2), nn.Linear(48, 48), nn.LeakyReLU(0.2), nn.Linear(48, 1)
)
opt_g = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(critic.parameters(), lr=2e-3, betas=(0.5, 0.999))
for step in range(300):
    drawn = generator(noise(64))
    loss_d = F.softplus(-critic(real(64))).mean() + F.softplus(critic(drawn.detach())).mean()
    opt_d.zero_grad()
    loss_d.backward()
    opt_d.step()
    loss_g = F.softplus(-critic(generator(noise(64)))).mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
spread = generator(noise(300)).std(0)
print(f"d {loss_d.item():.3f}, g {loss_g.item():.3f}, spread {spread[0]:.3f} {spread[1]:.3f}")
