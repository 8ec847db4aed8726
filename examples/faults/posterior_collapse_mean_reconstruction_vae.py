"""A VAE of the digits whose reconstruction term is a mean over pixels and its KL term a sum.

With the default reduction the 64 pixels count as one, and the KL divergence of eight latent
numbers outweighs them: the posterior becomes the prior, each image is decoded to the mean digit.
The place is the loss. The twin sums over the pixels too.
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

healthy, seed = arguments(__doc__)
x, _, x_val, _ = digits(seed)


class VAE(nn.Module):
    def __init__(self, latent=8):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 96), nn.ReLU())
        self.mu = nn.Linear(96, latent)
        self.logvar = nn.Linear(96, latent)
        self.decoder = nn.Sequential(nn.Linear(latent, 96), nn.ReLU(), nn.Linear(96, 64))

    def forward(self, x):
        h = self.encoder(x)
        mu, logvar = self.mu(h), self.logvar(h)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp() if self.training else mu
        return self.decoder(z), mu, logvar


def loss_function(output, x, mu, logvar):
    error = F.mse_loss(output, x, reduction="sum") / len(x) if healthy else F.mse_loss(output, x)
    kld = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1).mean()
    return error + kld, kld


model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(1, 41):
    model.train()
    total = kl = 0.0
    loader = DataLoader(TensorDataset(x), batch_size=64, shuffle=True)
    for (batch,) in loader:
        optimizer.zero_grad()
        output, mu, logvar = model(batch)
        loss, kld = loss_function(output, batch, mu, logvar)
        loss.backward()
        optimizer.step()
        total, kl = total + loss.item(), kl + kld.item()
    if epoch % 8 == 0:
        model.eval()
        with torch.no_grad():
            output, mu, logvar = model(x_val)
            error = F.mse_loss(output, x_val).item()
        print(
            f"epoch {epoch} loss {total / len(loader):.4f} KL {kl / len(loader):.4f} "
            f"val pixel MSE {error:.4f}"
        )
print(f"pixel MSE of the mean digit: {F.mse_loss(x.mean(0).expand_as(x_val), x_val).item():.4f}")
