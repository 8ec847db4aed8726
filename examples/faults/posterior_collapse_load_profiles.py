"""Daily load profiles of households by a variational autoencoder with beta = 20.

The beta comes from a paper on disentangling pictures with thousands of pixels. Here a profile has
24 hours, all together not worth twenty times the information of a latent number: the encoder
learns to say nothing and the decoder draws the mean profile for everyone.
The place is the loss and the encoder. The twin has beta = 0.5.
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "posterior_collapse"
ACCEPT = ("over_regularized", "representation_collapse")
PLACE = ("loss*", "encoder*", "mu", "logvar", "decoder*")
SILENT = True
EXACT = False
EARLY = True


class ProfileVAE(nn.Module):
    def __init__(self, latent=4):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
        self.mu, self.logvar = nn.Linear(32, latent), nn.Linear(32, latent)
        self.decoder = nn.Sequential(nn.Linear(latent, 64), nn.ReLU(), nn.Linear(64, 24))

    def forward(self, x):
        h = self.encoder(x)
        mu, logvar = self.mu(h), self.logvar(h)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp() if self.training else mu
        return self.decoder(z), mu, logvar


def households(n, g):
    hour = torch.arange(24.0)
    bump = [torch.exp(-(((hour - c) / w) ** 2)) for c, w in ((7, 2), (13, 3), (19, 2.5))]
    size = 1.0 + 0.9 * torch.randn(n, 3, generator=g)
    x = size @ torch.stack(bump) + 0.3 * torch.sin(2 * math.pi * hour / 24)
    x = x + 0.15 * torch.randn(n, 24, generator=g)
    return (x - x.mean(0)) / x.std(0)


def main():
    healthy, seed = arguments(__doc__)
    beta = 0.5 if healthy else 20.0
    x = households(2500, torch.Generator().manual_seed(seed))
    x, x_val = x[:2000], x[2000:]
    model = ProfileVAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(1, 21):
        model.train()
        sums = [0.0, 0.0]
        for rows in torch.randperm(len(x)).split(64):
            out, mu, logvar = model(x[rows])
            error = 0.5 * (out - x[rows]).pow(2).sum(1).mean()
            kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1).mean()
            loss = error + beta * kl
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            sums[0] += error.item() * len(rows) / len(x)
            sums[1] += kl.item() * len(rows) / len(x)
        if epoch % 5 == 0:
            model.eval()
            with torch.no_grad():
                val = (model(x_val)[0] - x_val).pow(2).mean()
            print(f"{epoch:3d} error {sums[0]:.2f} kl {sums[1]:.3f} validation mse {val:.3f}")


if __name__ == "__main__":
    main()
