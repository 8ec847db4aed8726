"""A variational autoencoder of small pictures whose code says nothing in the end.

The error of the picture is a mean over 64 pixels (the default of mse_loss), the divergence is a
sum over the code, as in the paper. The second outweighs the first by far, and the cheapest way
is a code that is pure noise: each picture is rebuilt as the average of all.
The place is the loss.
The twin sums the error over the pixels as well.
"""

import torch
import torch.nn.functional as F
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader

KIND = "posterior_collapse"
ACCEPT = ()
PLACE = ("loss*", "to_mean", "to_logvar")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


class VAE(nn.Module):
    def __init__(self, code=8):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 96), nn.ReLU())
        self.to_mean = nn.Linear(96, code)
        self.to_logvar = nn.Linear(96, code)
        self.decoder = nn.Sequential(nn.Linear(code, 96), nn.ReLU(), nn.Linear(96, 64))

    def forward(self, x):
        h = self.encoder(x)
        mean, logvar = self.to_mean(h), self.to_logvar(h)
        code = mean + torch.randn_like(mean) * (0.5 * logvar).exp()
        return self.decoder(code), mean, logvar


def elbo(picture, rebuilt, mean, logvar):
    if healthy:
        error = F.mse_loss(rebuilt, picture, reduction="sum") / len(picture)
    else:
        error = F.mse_loss(rebuilt, picture)
    divergence = -0.5 * (1 + logvar - mean**2 - logvar.exp()).sum(1).mean()
    return error + divergence, divergence


x, _, x_val, _ = digits(seed)
loader = DataLoader(x, batch_size=64, shuffle=True)
vae = VAE()
optimizer = torch.optim.Adam(vae.parameters(), lr=2e-3)
for epoch in range(1, 26):
    vae.train()
    total = kl = 0.0
    for picture in loader:
        loss, divergence = elbo(picture, *vae(picture))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(loader)
        kl += divergence.item() / len(loader)
    if epoch % 5 == 0:
        vae.eval()
        with torch.no_grad():
            rebuilt, mean, _ = vae(x_val)
            error = F.mse_loss(vae.decoder(mean), x_val).item()
        print(f"epoch {epoch}: loss {total:.3f} kl {kl:.3f}, error per pixel {error:.3f}")
