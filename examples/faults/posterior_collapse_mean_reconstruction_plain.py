"""A VAE of digit images adds the KL of the whole code to a reconstruction loss that is the mean
over the pixels.

The mean makes the reconstruction 64 times smaller than the likelihood that it stands for, so the KL
wins: it goes to zero, the code carries nothing and the decoder gives the average digit for every
input. The twin sums over the pixels. The place is the loss, `mu` or `logvar`.
"""

import torch
import torch.nn.functional as F
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "posterior_collapse"
ACCEPT = ()
PLACE = ("loss*", "mu", "logvar")
SILENT = True
EXACT = False
EARLY = False

CODE = 8
healthy, seed = arguments(__doc__)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 128), nn.ReLU())
        self.mu = nn.Linear(128, CODE)
        self.logvar = nn.Linear(128, CODE)
        self.decoder = nn.Sequential(nn.Linear(CODE, 128), nn.ReLU(), nn.Linear(128, 64))

    def forward(self, x):
        h = self.encoder(x)
        mu, logvar = self.mu(h), self.logvar(h)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp() if self.training else mu
        return self.decoder(z), mu, logvar


def losses(out, x, mu, logvar):
    if healthy:
        rec = F.binary_cross_entropy_with_logits(out, x, reduction="sum") / len(x)
    else:
        rec = F.binary_cross_entropy_with_logits(out, x)
    kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1).mean()
    return rec, kl


x, _, x_val, _ = digits(seed, raw=True)
x, x_val = x / 16, x_val / 16
loader = DataLoader(TensorDataset(x), batch_size=64, shuffle=True)
vae = VAE()
optimizer = torch.optim.Adam(vae.parameters(), lr=2e-3)
epochs = 40
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
for epoch in range(1, epochs + 1):
    vae.train()
    total = 0.0
    for (xb,) in loader:
        out, mu, logvar = vae(xb)
        rec, kl = losses(out, xb, mu, logvar)
        loss = rec + kl
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    scheduler.step()
    if epoch % 8 == 0:
        vae.eval()
        with torch.no_grad():
            out, mu, logvar = vae(x_val)
            rec, kl = losses(out, x_val, mu, logvar)
            error = F.mse_loss(out.sigmoid(), x_val).item()
        print(
            f"epoch {epoch}: loss {total / len(loader):.4f}, val rec {rec:.4f} kl {kl:.4f}, "
            f"pixel error {error:.4f}"
        )
