"""Learns a small code for infrared spectra with a variational autoencoder; the code says nothing.

The error of the picture is averaged over all wave numbers, the divergence from the normal
distribution is summed over the code. Set side by side, the divergence weighs as much as a
hundred wave numbers, and the encoder gives every spectrum the same code.
The place is the loss.
The twin sums the error over the wave numbers too.
"""

import torch
from data import arguments, batches
from torch import nn

KIND = "posterior_collapse"
ACCEPT = ("over_regularized",)
PLACE = ("loss*", "encoder", "to_mean", "to_spread")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

WAVES, CODE = 100, 6


def spectra(n, generator):
    axis = torch.arange(WAVES).float()
    amount = torch.rand(n, 5, generator=generator) * (torch.rand(n, 5, generator=generator) < 0.6)
    shift = torch.randn(n, 1, generator=generator)
    out = torch.zeros(n, WAVES)
    for i, (place, width) in enumerate([(14, 3), (31, 5), (48, 2.5), (66, 6), (85, 4)]):
        out = out + 4 * amount[:, i : i + 1] * torch.exp(-(((axis - place - shift) / width) ** 2))
    return out + 0.1 * torch.randn(n, WAVES, generator=generator)


class SpectrumVAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(WAVES, 64), nn.ReLU())
        self.to_mean = nn.Linear(64, CODE)
        self.to_spread = nn.Linear(64, CODE)
        self.decoder = nn.Sequential(nn.Linear(CODE, 64), nn.ReLU(), nn.Linear(64, WAVES))

    def forward(self, x):
        hidden = self.encoder(x)
        mean, logvar = self.to_mean(hidden), self.to_spread(hidden)
        code = mean
        if self.training:
            code = mean + torch.randn_like(mean) * (0.5 * logvar).exp()
        return self.decoder(code), mean, logvar


def elbo(x, drawn, mean, logvar):
    squares = (drawn - x) ** 2
    error = squares.sum(1).mean() if healthy else squares.mean()
    divergence = 0.5 * (mean**2 + logvar.exp() - 1 - logvar).sum(1).mean()
    return error + divergence, divergence


g = torch.Generator().manual_seed(seed)
train, val = spectra(2500, g), spectra(500, g)
model = SpectrumVAE()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step, (x,) in enumerate(batches(train, size=100, steps=700, seed=seed), 1):
    model.train()
    loss, divergence = elbo(x, *model(x))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        model.eval()
        with torch.no_grad():
            error = ((model(val)[0] - val) ** 2).mean() / val.var(0).mean()
        print(
            f"step {step}: loss {loss.item():.3f}, divergence {divergence.item():.3f}, "
            f"validation: {100 * error.item():.0f} % of the variance not explained"
        )
