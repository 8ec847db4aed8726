"""A VAE for digits whose reconstruction error is a mean over pixels, its KL a sum.

With that the KL term outweighs the reconstruction some 64 times: the encoder learns to say
nothing, and every digit is decoded to the same grey average. The place is the loss.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, digits
from torch import nn

KIND = "posterior_collapse"
ACCEPT = ()
PLACE = ("encoder*", "to_mu*", "to_logvar*", "decoder*", "loss*", "")
SILENT = True
EXACT = False
EARLY = False

LATENT = 8


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 64), nn.ReLU())
        self.to_mu = nn.Linear(64, LATENT)
        self.to_logvar = nn.Linear(64, LATENT)
        self.decoder = nn.Sequential(nn.Linear(LATENT, 64), nn.ReLU(), nn.Linear(64, 64))

    def forward(self, x):
        h = self.encoder(x)
        mu, logvar = self.to_mu(h), self.to_logvar(h)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return self.decoder(z), mu, logvar


def vae_loss(recon, x, mu, logvar, mean):
    if mean:
        reconstruction = F.mse_loss(recon, x)
    else:
        reconstruction = F.mse_loss(recon, x, reduction="sum") / len(x)
    kl = -0.5 * (1 + logvar - mu**2 - logvar.exp()).sum(1).mean()
    return reconstruction + kl, kl


healthy, seed = arguments(__doc__)
x, _, x_val, _ = digits(seed)
vae = VAE()
optimizer = torch.optim.Adam(vae.parameters(), lr=0.003)
for (batch,) in batches(x, size=64, steps=500, seed=seed):
    optimizer.zero_grad()
    recon, mu, logvar = vae(batch)
    loss, kl = vae_loss(recon, batch, mu, logvar, mean=not healthy)
    loss.backward()
    optimizer.step()
vae.eval()
with torch.no_grad():
    recon, mu, logvar = vae(x_val)
    error = F.mse_loss(recon, x_val)
print(f"loss {loss.item():.3f}, KL {kl.item():.4f}, error per pixel {error.item():.3f}")
