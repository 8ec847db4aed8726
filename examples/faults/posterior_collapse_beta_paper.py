"""Variational autoencoder for small scanned numerals; the weight of the KL term is too large.

Beta was taken from a paper on disentangled factors, whose pictures have 12,288 values each. Ours
have 64: with the same beta the KL term outweighs everything that the code could say about the
picture. The encoder gives the prior for every picture, and the decoder paints the mean picture.
The place is the loss.
The twin uses a beta of 1, the plain evidence bound.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, digits
from torch import nn

KIND = "posterior_collapse"
ACCEPT = ("over_regularized",)
PLACE = ("loss*", "encoder", "to_mean", "to_logvar")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
settings = {"beta": 1.0 if healthy else 40.0, "latent": 6, "hidden": 96, "lr": 2e-3}


class VAE(nn.Module):
    def __init__(self, latent, hidden):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, hidden), nn.ReLU())
        self.to_mean = nn.Linear(hidden, latent)
        self.to_logvar = nn.Linear(hidden, latent)
        self.decoder = nn.Sequential(nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, 64))

    def forward(self, x):
        h = self.encoder(x)
        mean, logvar = self.to_mean(h), self.to_logvar(h)
        z = mean + (0.5 * logvar).exp() * torch.randn_like(mean)
        return self.decoder(z), mean, logvar


def terms(x, logits, mean, logvar):
    picture = F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(1).mean()
    kl = (-0.5 * (1 + logvar - mean**2 - logvar.exp())).sum(1).mean()
    return picture, kl


x, _, x_val, _ = digits(seed, raw=True)
x, x_val = x / 16, x_val / 16
vae = VAE(settings["latent"], settings["hidden"])
optimizer = torch.optim.Adam(vae.parameters(), lr=settings["lr"])

for step, (rows,) in enumerate(batches(x, size=64, steps=900, seed=seed), 1):
    picture, kl = terms(rows, *vae(rows))
    loss = picture + settings["beta"] * kl
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 150 == 0:
        with torch.no_grad():
            logits, mean, logvar = vae(x_val)
            val_picture, val_kl = terms(x_val, logits, mean, logvar)
            error = (logits.sigmoid() - x_val).pow(2).mean()
        print(
            f"step {step}: loss {loss.item():.2f}; validation: picture {val_picture:.2f}, "
            f"KL {val_kl:.2f}, mean squared error {error:.4f}"
        )
