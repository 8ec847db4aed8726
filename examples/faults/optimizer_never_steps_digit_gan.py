"""A small GAN draws digits; after the generator's backward pass optimizer_g.step() is missing.

The generator's gradients are computed and cleared but never applied: it keeps its first weights
and paints noise, while the discriminator wins.
The place is the training loop (the generator's optimizer).
"""

import torch
from data import arguments
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader

KIND = "optimizer_never_steps"
ACCEPT = ()
PLACE = ("optimizer", "loop", "generator", "optimizer_g")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

LATENT, EPOCHS, BATCH = 16, 30, 64


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Linear(LATENT, 128),
            nn.LeakyReLU(0.2),
            nn.Linear(128, 256),
            nn.LeakyReLU(0.2),
            nn.Linear(256, 64),
            nn.Tanh(),
        )

    def forward(self, z):
        return self.main(z)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Linear(64, 256),
            nn.LeakyReLU(0.2),
            nn.Dropout(0.3),
            nn.Linear(256, 128),
            nn.LeakyReLU(0.2),
            nn.Dropout(0.3),
            nn.Linear(128, 1),
        )

    def forward(self, image):
        return self.main(image).squeeze(1)


def distance(real, fake):
    """Between the means and the covariances of the pixels, as a share of the real variance."""
    gap = (real.mean(0) - fake.mean(0)).pow(2).sum() / real.var(0).sum()
    real_cov, fake_cov = torch.cov(real.T), torch.cov(fake.T)
    return gap.item(), ((real_cov - fake_cov).norm() / real_cov.norm()).item()


images = torch.tensor(load_digits().data, dtype=torch.float32) / 8 - 1
loader = DataLoader(images, BATCH, shuffle=True, drop_last=True)
generator, discriminator = Generator(), Discriminator()
criterion = nn.BCEWithLogitsLoss()
optimizer_g = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.999))
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=1e-3, betas=(0.5, 0.999))
fixed_noise = torch.randn(500, LATENT)
ones, zeros = torch.full((BATCH,), 0.9), torch.zeros(BATCH)

for epoch in range(EPOCHS):
    sum_d = sum_g = 0.0
    for real in loader:
        fake = generator(torch.randn(BATCH, LATENT))
        optimizer_d.zero_grad()
        loss_d = criterion(discriminator(real), ones)
        loss_d = loss_d + criterion(discriminator(fake.detach()), zeros)
        loss_d.backward()
        optimizer_d.step()

        optimizer_g.zero_grad()
        optimizer_d.zero_grad()
        loss_g = criterion(discriminator(fake), torch.ones(BATCH))
        loss_g.backward()
        if healthy:
            optimizer_g.step()
        sum_d, sum_g = sum_d + loss_d.item(), sum_g + loss_g.item()
    if (epoch + 1) % 5:
        continue
    with torch.no_grad():
        mean_gap, cov_gap = distance(images, generator(fixed_noise))
    print(
        f"[{epoch + 1}/{EPOCHS}] Loss_D: {sum_d / len(loader):.4f} Loss_G: "
        f"{sum_g / len(loader):.4f} mean gap: {mean_gap:.3f} covariance gap: {cov_gap:.3f}"
    )
