"""Convolutional VAE of drawn shapes; the KL weight is ramped up "over two epochs" and never
capped.

`beta = epoch / 2` goes on to 12: the KL term outweighs the reconstruction, and the latent space
is given up, some epochs after all looked well. The twin has min(1, ...). The place is the
encoder's outputs and the loss. The loss (with its growing weight) does not say so.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "posterior_collapse"
ACCEPT = ("over_regularized",)
PLACE = ("encoder*", "to_mu", "to_logvar", "decoder*", "loss*", "loop", "")
SILENT = False
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
SIZE, LATENT, EPOCHS = 8, 4, 26


def shapes(n):
    """Soft discs and bars: place, size and direction are what is to be found."""
    row, col = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    cy, cx = 1.5 + 4.5 * torch.rand(2, n, 1, 1)
    r = 0.9 + 1.1 * torch.rand(n, 1, 1)
    disc = torch.sigmoid(3 * (r - ((row - cy) ** 2 + (col - cx) ** 2).sqrt()))
    bar_at = torch.where(torch.rand(n, 1, 1) < 0.5, (row - cy).abs(), (col - cx).abs())
    bar = torch.sigmoid(3 * (0.5 * r - bar_at))
    return torch.where(torch.rand(n, 1, 1) < 0.5, disc, bar).unsqueeze(1)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 16, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(16 * 16, 64),
            nn.ReLU(),
        )
        self.to_mu, self.to_logvar = nn.Linear(64, LATENT), nn.Linear(64, LATENT)
        self.decoder = nn.Sequential(
            nn.Linear(LATENT, 64),
            nn.ReLU(),
            nn.Linear(64, 16 * 16),
            nn.ReLU(),
            nn.Unflatten(1, (16, 4, 4)),
            nn.ConvTranspose2d(16, 1, 4, stride=2, padding=1),
        )

    def forward(self, x):
        h = self.encoder(x)
        mu, logvar = self.to_mu(h), self.to_logvar(h)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return self.decoder(z), mu, logvar


def terms(out, x, mu, logvar):
    recon = F.binary_cross_entropy_with_logits(out, x, reduction="sum") / len(x)
    kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum() / len(x)
    return recon, kl


x_train, x_val = shapes(1500), shapes(300)
loader = DataLoader(TensorDataset(x_train), batch_size=50, shuffle=True)
vae = VAE()
optimizer = torch.optim.Adam(vae.parameters(), lr=2e-3)
for epoch in range(EPOCHS):
    beta = min(1.0, epoch / 2) if healthy else epoch / 2
    vae.train()
    for (batch,) in loader:
        out, mu, logvar = vae(batch)
        recon, kl = terms(out, batch, mu, logvar)
        loss = recon + beta * kl
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 5 == 0 or epoch == EPOCHS - 1:
        vae.eval()
        with torch.no_grad():
            out, mu, logvar = vae(x_val)
            v_recon, v_kl = terms(out, x_val, mu, logvar)
        print(
            f"epoch {epoch}: beta {beta:.1f} loss {loss.item():.2f} recon {recon.item():.2f} "
            f"kl {kl.item():.2f} | val recon {v_recon.item():.2f} kl {v_kl.item():.2f} "
            f"elbo {-(v_recon + v_kl).item():.2f}"
        )
