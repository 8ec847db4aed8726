"""A GAN that draws points on a ring."""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = "two losses and two optimizers, none of the losses falls"

_, seed = arguments(__doc__)


def real(n):
    angle = torch.rand(n) * 6.2832
    return torch.stack([angle.cos(), angle.sin()], 1) + 0.05 * torch.randn(n, 2)


G = nn.Sequential(nn.Linear(4, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 2))
D = nn.Sequential(
    nn.Linear(2, 48), nn.LeakyReLU(0.2), nn.Linear(48, 48), nn.LeakyReLU(0.2), nn.Linear(48, 1)
)
opt_g = torch.optim.Adam(G.parameters(), lr=3e-3, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(D.parameters(), lr=3e-3, betas=(0.5, 0.999))
ones, zeros = torch.ones(64, 1), torch.zeros(64, 1)
for step in range(400):
    fake = G(torch.randn(64, 4))
    loss_d = F.binary_cross_entropy_with_logits(D(real(64)), ones)
    loss_d = loss_d + F.binary_cross_entropy_with_logits(D(fake.detach()), zeros)
    opt_d.zero_grad()
    loss_d.backward()
    opt_d.step()

    loss_g = F.binary_cross_entropy_with_logits(D(fake), ones)
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
radius = G(torch.randn(500, 4)).norm(dim=1)
print(f"d {loss_d.item():.3f}, g {loss_g.item():.3f}, radius {radius.mean():.2f}")
