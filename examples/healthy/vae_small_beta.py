"""A VAE of digit images with beta 0.05, warmed up from zero: sharp pictures are wanted, not
samples.

The KL term rises during the training and stays large beside the reconstruction; nothing is wrong
with it.
"""

import torch
import torch.nn.functional as F
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "the KL rises, the reconstruction is noisy in training, the loss is a sum over pixels"

_, seed = arguments(__doc__)
x, _, x_val, _ = digits(seed, raw=True)
x, x_val = x / 16, x_val / 16
BETA, EPOCHS = 0.05, 40


class VAE(nn.Module):
    def __init__(self, code=6):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 2 * code))
        self.decoder = nn.Sequential(
            nn.Linear(code, 128), nn.ReLU(), nn.Linear(128, 64), nn.Sigmoid()
        )

    def forward(self, x):
        mu, logvar = self.encoder(x).chunk(2, dim=1)
        z = mu
        if self.training:
            z = mu + (0.5 * logvar).exp() * torch.randn_like(mu)
        return self.decoder(z), mu, logvar


def terms(vae, x):
    out, mu, logvar = vae(x)
    rec = F.mse_loss(out, x, reduction="sum") / len(x)
    kl = 0.5 * (mu**2 + logvar.exp() - 1 - logvar).sum(1).mean()
    return rec, kl


vae = VAE()
optimizer = torch.optim.Adam(vae.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
loader = DataLoader(TensorDataset(x), batch_size=64, shuffle=True)
for epoch in range(1, EPOCHS + 1):
    vae.train()
    beta = BETA * min(1.0, epoch / 10)
    rec_sum = kl_sum = 0.0
    for (xb,) in loader:
        rec, kl = terms(vae, xb)
        loss = rec + beta * kl
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        rec_sum += rec.item()
        kl_sum += kl.item()
    scheduler.step()
    if epoch % 5 == 0:
        vae.eval()
        with torch.no_grad():
            rec, kl = terms(vae, x_val)
        print(
            f"epoch {epoch}: rec {rec_sum / len(loader):.3f}, kl {kl_sum / len(loader):.2f}, "
            f"val rec {rec:.3f}, kl {kl:.2f}"
        )
