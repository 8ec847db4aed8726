"""A VAE of handwritten digits whose reconstruction error is F.mse_loss (a mean over 64 pixels)
while the Kullback-Leibler term is summed over the latent numbers.

The KL term weighs some sixty times too much: it goes to 0, the code holds nothing, and all digits
are reconstructed as the mean digit. The total loss falls all the while. The place is the loss.
"""

import torch
import torch.nn.functional as F
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "posterior_collapse"
ACCEPT = ()
PLACE = ("*mu*", "*logvar*", "enc*", "*encoder*", "loss*", "")
SILENT = True
EXACT = False
EARLY = False


class VAE(nn.Module):
    def __init__(self, z_dim=8):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU())
        self.fc_mu = nn.Linear(64, z_dim)
        self.fc_logvar = nn.Linear(64, z_dim)
        self.decoder = nn.Sequential(
            nn.Linear(z_dim, 64), nn.ReLU(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64)
        )

    def reparameterize(self, mu, logvar):
        return mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)

    def forward(self, x):
        h = self.encoder(x)
        mu, logvar = self.fc_mu(h), self.fc_logvar(h)
        return self.decoder(self.reparameterize(mu, logvar)), mu, logvar


def vae_loss(recon_x, x, mu, logvar, reduction):
    if reduction == "sum":
        recon = 0.5 * F.mse_loss(recon_x, x, reduction="sum") / len(x) / 0.3
    else:
        recon = F.mse_loss(recon_x, x)
    kl = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp(), dim=1).mean()
    return recon + kl, kl


healthy, seed = arguments(__doc__)
x, _, x_val, _ = digits(seed)
vae = VAE()
optimizer = torch.optim.Adam(vae.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 30)
reduction = "sum" if healthy else "mean"
loader = DataLoader(TensorDataset(x), batch_size=64, shuffle=True, drop_last=True)
for epoch in range(30):
    vae.train()
    train_loss = train_kl = 0.0
    for (batch,) in loader:
        optimizer.zero_grad()
        recon_batch, mu, logvar = vae(batch)
        loss, kl = vae_loss(recon_batch, batch, mu, logvar, reduction)
        loss.backward()
        optimizer.step()
        train_loss += loss.item() / len(loader)
        train_kl += kl.item() / len(loader)
    scheduler.step()
    vae.eval()
    with torch.no_grad():
        recon_val, mu, logvar = vae(x_val)
        val_loss, _ = vae_loss(recon_val, x_val, mu, logvar, reduction)
        error = F.mse_loss(recon_val, x_val)
print(
    f"loss {train_loss:.3f}, val loss {val_loss:.3f}, KL {train_kl:.4f}, "
    f"squared error a pixel {error:.3f}"
)
