"""A VAE of short signals averages its reconstruction error over every sample but sums the KL.

Against a mean over 40 time steps, the summed KL weighs forty times too much: every code goes to the
prior and the decoder draws the same mean signal for all. The place is the loss, and with it the
encoder's code.
"""

import torch
from data import arguments
from torch import nn

KIND = "posterior_collapse"
ACCEPT = ("over_regularized",)
PLACE = ("loss*", "encoder*", "to_mu*", "to_logvar*", "decoder*", "")
SILENT = True
EXACT = False
EARLY = False

healthy, _ = arguments(__doc__)
T, Z = 40, 4


def pulses(n):
    t = torch.linspace(0, 1, T)
    where, height = 0.2 + 0.6 * torch.rand(n, 1), 0.5 + torch.rand(n, 1)
    width = 0.05 + 0.08 * torch.rand(n, 1)
    slope = torch.randn(n, 1)
    s = height * torch.exp(-(((t - where) / width) ** 2)) + 0.4 * slope * (t - 0.5)
    return (s - s.mean()) / s.std() + 0.1 * torch.randn(n, T)


class SignalVAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(T, 96), nn.ELU(), nn.Linear(96, 48), nn.ELU())
        self.to_mu = nn.Linear(48, Z)
        self.to_logvar = nn.Linear(48, Z)
        self.decoder = nn.Sequential(
            nn.Linear(Z, 48), nn.ELU(), nn.Linear(48, 96), nn.ELU(), nn.Linear(96, T)
        )

    def forward(self, s):
        h = self.encoder(s)
        mu, logvar = self.to_mu(h), self.to_logvar(h)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return self.decoder(z), mu, logvar


def elbo_terms(s, recon, mu, logvar):
    kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1).mean()
    if healthy:
        return nn.functional.mse_loss(recon, s, reduction="none").sum(1).mean(), kl
    return nn.functional.mse_loss(recon, s), kl


train, test = pulses(2400), pulses(400)
vae = SignalVAE()
optimizer = torch.optim.Adam(vae.parameters(), lr=2e-3)
for epoch in range(14):
    for rows in torch.randperm(len(train)).split(64):
        s = train[rows]
        rec, kl = elbo_terms(s, *vae(s))
        loss = rec + kl
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 3 == 1:
        with torch.no_grad():
            recon, mu, _ = vae(test)
            left = (recon - test).pow(2).mean() / test.var()
        print(
            f"epoch {epoch}: rec {rec.item():.3f} kl {kl.item():.4f} "
            f"unexplained {left.item():.3f} code spread {mu.std(0).mean().item():.3f}"
        )
