"""A small GAN that learns to draw points of two moons."""

import torch
from data import arguments
from sklearn.datasets import make_moons
from torch import nn

ODD = "neither loss falls: generator and discriminator hold each other at the logarithm of two"

_, seed = arguments(__doc__)
points, _ = make_moons(4000, noise=0.05, random_state=seed)
points = torch.tensor((points - points.mean(0)) / points.std(0)).float()
generator = nn.Sequential(
    nn.Linear(4, 48), nn.LeakyReLU(0.2), nn.Linear(48, 48), nn.LeakyReLU(0.2), nn.Linear(48, 2)
)
discriminator = nn.Sequential(
    nn.Linear(2, 48), nn.LeakyReLU(0.2), nn.Linear(48, 48), nn.LeakyReLU(0.2), nn.Linear(48, 1)
)
opt_g = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(discriminator.parameters(), lr=2e-3, betas=(0.5, 0.999))
bce = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(128, 1), torch.zeros(128, 1)
for step in range(1000):
    real = points[torch.randint(0, len(points), (128,))]
    fake = generator(torch.randn(128, 4))

    opt_d.zero_grad()
    loss_d = 0.5 * (bce(discriminator(real), ones) + bce(discriminator(fake.detach()), zeros))
    loss_d.backward()
    opt_d.step()

    opt_g.zero_grad()
    loss_g = bce(discriminator(fake), ones)
    loss_g.backward()
    opt_g.step()
with torch.no_grad():
    drawn = generator(torch.randn(1000, 4))
    nearest = torch.cdist(drawn, points).min(1).values.mean().item()
    covered = torch.cdist(points[:1000], drawn).min(1).values.mean().item()
print(f"D {loss_d.item():.3f} G {loss_g.item():.3f}; distances {nearest:.3f} {covered:.3f}")
