"""A VAE of drawn clock faces whose KL term outweighs the reconstruction from the first step.

The reconstruction is averaged over the pixels while the KL is summed over the latent dimensions:
the KL weighs 144 times too much. The encoder gives the prior for every picture and the decoder
draws the average picture. The place is the loss (the encoder's outputs mean and logvar).
"""

import math

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F

KIND = "posterior_collapse"
ACCEPT = ()
PLACE = ("loss", "loop", "to_mean", "to_logvar", "encoder*")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

SIZE = 12


def clocks(n):
    """A ring with one hand, of any angle, thickness and brightness."""
    axis = torch.linspace(-1, 1, SIZE)
    gy, gx = torch.meshgrid(axis, axis, indexing="ij")
    angle = 2 * math.pi * torch.rand(n, 1, 1)
    width = 0.1 + 0.15 * torch.rand(n, 1, 1)
    along = gx * angle.cos() + gy * angle.sin()
    across = -gx * angle.sin() + gy * angle.cos()
    hand = torch.exp(-((across / width) ** 2)) * torch.sigmoid(12 * along)
    ring = torch.exp(-(((gx**2 + gy**2).sqrt() - 0.85) ** 2) / 0.02)
    return (hand + 0.6 * ring).clamp(0, 1).flatten(1)


class VAE(nn.Module):
    def __init__(self, latent=6):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(SIZE * SIZE, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU()
        )
        self.to_mean = nn.Linear(64, latent)
        self.to_logvar = nn.Linear(64, latent)
        self.decoder = nn.Sequential(
            nn.Linear(latent, 64),
            nn.ReLU(),
            nn.Linear(64, 128),
            nn.ReLU(),
            nn.Linear(128, SIZE * SIZE),
        )

    def forward(self, x):
        h = self.encoder(x)
        mean, logvar = self.to_mean(h), self.to_logvar(h)
        z = mean + torch.randn_like(mean) * (0.5 * logvar).exp() if self.training else mean
        return self.decoder(z), mean, logvar


def terms(model, x):
    logits, mean, logvar = model(x)
    pixels = F.binary_cross_entropy_with_logits(logits, x, reduction="none")
    kl = -0.5 * (1 + logvar - mean**2 - logvar.exp()).sum(1).mean()
    return pixels.sum(1).mean() if healthy else pixels.mean(), kl


pictures = clocks(2400)
train, val = pictures[:2000], pictures[2000:]
model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(30):
    model.train()
    for rows in torch.randperm(len(train)).split(64):
        reconstruction, kl = terms(model, train[rows])
        loss = reconstruction + kl
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 5 == 4:
        model.eval()
        with torch.no_grad():
            logits, mean, _ = model(val)
            error = F.mse_loss(torch.sigmoid(logits), val).item()
        print(
            f"epoch {epoch} loss {loss.item():.4f} kl {kl.item():.4f} "
            f"val mse {error:.4f} spread of means {mean.std(0).mean().item():.3f}"
        )
