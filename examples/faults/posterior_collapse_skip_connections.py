"""A convolutional VAE with U-Net skips from the encoder to the decoder, added for sharper pictures.

The skips carry the picture past the latent, whose KL is pressed to 0: reconstructions are
excellent, the latent says nothing, and samples (no skips to take) are grey. The place is the
latent and the decoder.
"""

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn

KIND = "posterior_collapse"
ACCEPT = ()
PLACE = ("to_mu*", "to_logvar*", "*decode*", "up*", "")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
x, _, x_val, _ = images(seed, raw=True)
x, x_val = x / 16, x_val / 16
LATENT = 6


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1 = nn.Conv2d(1, 12, 3, stride=2, padding=1)  # 8 -> 4
        self.down2 = nn.Conv2d(12, 24, 3, stride=2, padding=1)  # 4 -> 2
        self.to_mu = nn.Linear(96, LATENT)
        self.to_logvar = nn.Linear(96, LATENT)
        self.from_latent = nn.Linear(LATENT, 96)
        self.up1 = nn.ConvTranspose2d(24, 12, 4, stride=2, padding=1)
        self.up2 = nn.ConvTranspose2d(12 if healthy else 24, 12, 4, stride=2, padding=1)
        self.last = nn.Conv2d(12, 1, 3, padding=1)

    def encode(self, pictures):
        skip = F.silu(self.down1(pictures))
        h = F.silu(self.down2(skip)).flatten(1)
        return self.to_mu(h), self.to_logvar(h), skip

    def decode(self, z, skip):
        h = F.silu(self.from_latent(z)).view(-1, 24, 2, 2)
        h = F.silu(self.up1(h))
        if not healthy:
            h = torch.cat([h, skip], 1)
        return self.last(F.silu(self.up2(h)))

    def forward(self, pictures):
        mu, logvar, skip = self.encode(pictures)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return self.decode(z, skip), mu, logvar


def negative_elbo(logits, pictures, mu, logvar, beta):
    # Gaussian likelihood with a spread of 0.2 a pixel
    error = ((logits.sigmoid() - pictures) ** 2).flatten(1).sum(1) / (2 * 0.2**2)
    kl = -0.5 * (1 + logvar - mu**2 - logvar.exp()).sum(1)
    return (error + beta * kl).mean(), error.mean().item(), kl.mean().item()


vae = VAE()
optimizer = torch.optim.Adam(vae.parameters(), lr=3e-3)
step = 0
for epoch in range(16):
    vae.train()
    for rows in torch.randperm(len(x)).split(64):
        step += 1
        loss, error, kl = negative_elbo(
            *(o := vae(x[rows]))[:1], x[rows], *o[1:], beta=min(1.0, step / 150)
        )
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    vae.eval()
    with torch.no_grad():
        logits, mu, logvar = vae(x_val)
        val, val_error, val_kl = negative_elbo(logits, x_val, mu, logvar, 1.0)
        told = mu.var(0).mean().item()
print(
    f"loss {loss.item():.2f}, validation {val.item():.2f} = error "
    f"{val_error:.2f} + KL {val_kl:.3f}, variance of mu {told:.4f}"
)
