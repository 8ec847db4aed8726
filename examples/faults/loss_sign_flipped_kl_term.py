"""A variational autoencoder of daily load profiles; the KL term lost its minus sign and pushes the
posterior away from the prior.

0.5 * sum(1 + logvar - mu^2 - exp(logvar)) is minus the divergence, and the user adds it as it
stands. The total falls below 0 and on without end, and samples from the prior are useless. The
place is the loss.
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "loss_sign_flipped"
ACCEPT = ()
PLACE = ("loss", "loop")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

HOURS, LATENT = 24, 4


def profiles(n, g):
    t = torch.arange(HOURS).float()

    def peak(at, width, height):
        return height * torch.exp(-((t - at) ** 2) / (2 * width**2))

    r = lambda lo, hi: lo + (hi - lo) * torch.rand(n, 1, generator=g)  # noqa: E731
    worker = (torch.rand(n, 1, generator=g) < 0.6).float()
    x = r(0.2, 0.5) + worker * (peak(r(6, 8), 1.2, r(0.5, 1.2)) + peak(r(18, 21), 2.0, r(0.8, 1.6)))
    x = x + (1 - worker) * peak(r(11, 14), 4.0, r(0.6, 1.4))
    x = x - torch.relu(peak(12.5, 2.5, r(-0.8, 0.7)))  # some have solar panels
    return x + 0.08 * torch.randn(n, HOURS, generator=g)


class LoadVAE(nn.Module):
    def __init__(self, h=96):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(HOURS, h), nn.Tanh(), nn.Linear(h, h), nn.Tanh())
        self.to_mu, self.to_logvar = nn.Linear(h, LATENT), nn.Linear(h, LATENT)
        self.decoder = nn.Sequential(
            nn.Linear(LATENT, h), nn.Tanh(), nn.Linear(h, h), nn.Tanh(), nn.Linear(h, HOURS)
        )

    def forward(self, x):
        h = self.encoder(x)
        mu, logvar = self.to_mu(h), self.to_logvar(h).clamp(-8, 8)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)
        return self.decoder(z), mu, logvar


def elbo_terms(x, out, mu, logvar, noise=0.15):
    recon = 0.5 * ((x - out) / noise).pow(2).sum(1).mean() + HOURS * math.log(
        noise * math.sqrt(2 * math.pi)
    )
    sign = -0.5 if healthy else 0.5
    kl = sign * torch.sum(1 + logvar - mu.pow(2) - logvar.exp(), dim=1).mean()
    return recon, kl


def true_elbo(model, x):
    with torch.no_grad():
        out, mu, logvar = model(x)
        recon = 0.5 * ((x - out) / 0.15).pow(2).sum(1).mean() + HOURS * math.log(
            0.15 * math.sqrt(2 * math.pi)
        )
        q = torch.distributions.Normal(mu, torch.exp(0.5 * logvar))
        kl = (
            torch.distributions.kl_divergence(q, torch.distributions.Normal(0.0, 1.0)).sum(1).mean()
        )
        sample = model.decoder(torch.randn(len(x), LATENT))
        gap = (sample.mean(0) - x.mean(0)).abs().mean() + (sample.std(0) - x.std(0)).abs().mean()
    return -(recon + kl).item(), gap.item()


g = torch.Generator().manual_seed(seed)
x_train, x_val = profiles(6000, g), profiles(1000, g)
mean, std = x_train.mean(0), x_train.std()
x_train, x_val = (x_train - mean) / std, (x_val - mean) / std
model = LoadVAE()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 30, eta_min=1e-4)
for epoch in range(1, 31):
    model.train()
    beta = min(1.0, epoch / 8)
    sums = torch.zeros(2)
    for x in x_train[torch.randperm(len(x_train))].split(120):
        out, mu, logvar = model(x)
        recon, kl = elbo_terms(x, out, mu, logvar)
        loss = recon + beta * kl
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 50.0)
        optimizer.step()
        sums += torch.tensor([recon.item(), kl.item()])
    scheduler.step()
    if epoch % 5 == 0:
        model.eval()
        elbo, gap = true_elbo(model, x_val)
        recon, kl = (sums / 50).tolist()
        print(
            f"epoch {epoch} recon {recon:.3f} kl {kl:.3f} total {recon + beta * kl:.3f} | val elbo {elbo:.3f} sample gap {gap:.4f}"  # noqa: E501
        )
