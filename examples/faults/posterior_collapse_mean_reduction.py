"""A variational autoencoder of handwritten digits with `F.mse_loss` as it comes.

The Kullback-Leibler term is a sum over the latents, per image; the reconstruction, by default, is
a mean over the 64 pixels as well as the images. So the prior weighs 64 times what it should, the
posterior becomes the prior, and the decoder paints the mean digit. The place is the loss. The twin
sums over the pixels.
"""

import torch
from data import arguments, digits
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

KIND = "posterior_collapse"
ACCEPT = ()
PLACE = ("loss",)
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
x, _, x_val, _ = digits(seed)
loader = DataLoader(TensorDataset(x), batch_size=64, shuffle=True)


class VAE(nn.Module):
    def __init__(self, latent=8):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 128), nn.ReLU())
        self.mu = nn.Linear(128, latent)
        self.logvar = nn.Linear(128, latent)
        self.decoder = nn.Sequential(nn.Linear(latent, 128), nn.ReLU(), nn.Linear(128, 64))

    def forward(self, x):
        hidden = self.encoder(x)
        mu, logvar = self.mu(hidden), self.logvar(hidden)
        z = mu
        if self.training:
            z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return self.decoder(z), mu, logvar


def loss_function(recon, x, mu, logvar):
    error = F.mse_loss(recon, x, reduction="sum") / len(x) if healthy else F.mse_loss(recon, x)
    kld = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1).mean()
    return error + kld, error, kld


model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(1, 41):
    model.train()
    for (batch,) in loader:
        optimizer.zero_grad()
        recon, mu, logvar = model(batch)
        loss, error, kld = loss_function(recon, batch, mu, logvar)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        recon, mu, logvar = model(x_val)
        val, _, val_kld = loss_function(recon, x_val, mu, logvar)
    explained = 1 - (recon - x_val).pow(2).mean() / (x_val - x.mean(0)).pow(2).mean()
    if epoch % 4 == 0:
        print(
            f"epoch {epoch} train {loss.item():.3f} val {val.item():.3f} KL {val_kld.item():.4f} "
            f"variance explained {explained.item():.3f}"
        )
