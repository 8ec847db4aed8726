"""A variational autoencoder for infrared spectra; its code of four numbers comes to hold nothing.

The reconstruction is averaged over all points of the spectrum while the divergence from the prior
is summed over the code, so that the second outweighs the first some sixty times. The encoder gives
up: every spectrum is encoded as the prior, and the decoder answers with the mean spectrum.
The place is the loss, and what suffers is the encoder's output.
The twin sums both over one spectrum before it averages over the batch.
"""

import torch
from data import arguments
from torch import nn

KIND = "posterior_collapse"
ACCEPT = ()
PLACE = ("loss*", "encoder", "to_mean", "to_logvar", "decoder")
SILENT = False
EXACT = False
EARLY = False

POINTS, CODE = 64, 4


def spectra(n, g):
    """Mixtures of five compounds, each with a few absorption bands, plus detector noise."""
    wavenumber = torch.linspace(0, 1, POINTS)
    pure = torch.zeros(5, POINTS)
    for compound in range(5):
        for _ in range(3):
            centre, width = torch.rand(1, generator=g), 0.02 + 0.04 * torch.rand(1, generator=g)
            pure[compound] += torch.exp(-0.5 * ((wavenumber - centre) / width) ** 2)
    amount = torch.distributions.Dirichlet(torch.full((5,), 0.5)).sample((n,))
    clean = amount @ pure
    noisy = clean + 0.03 * torch.randn(n, POINTS, generator=g)
    return (noisy - noisy.mean(0)) / noisy.std()


class SpectrumVAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(POINTS, 64), nn.ELU(), nn.Linear(64, 32), nn.ELU())
        self.to_mean = nn.Linear(32, CODE)
        self.to_logvar = nn.Linear(32, CODE)
        self.decoder = nn.Sequential(nn.Linear(CODE, 64), nn.ELU(), nn.Linear(64, POINTS))

    def forward(self, x):
        h = self.encoder(x)
        mean, logvar = self.to_mean(h), self.to_logvar(h)
        z = mean + torch.exp(0.5 * logvar) * torch.randn_like(mean) if self.training else mean
        return self.decoder(z), mean, logvar


def objective(x, decoded, mean, logvar):
    divergence = -0.5 * (1 + logvar - mean.pow(2) - logvar.exp()).sum(1)
    error = (x - decoded).pow(2)
    reconstruction = error.sum(1) if healthy else error.mean(1)
    return (reconstruction + divergence).mean()


healthy, seed = arguments(__doc__)
generator = torch.Generator().manual_seed(seed)
data = spectra(1500, generator)
train, val = data[:1200], data[1200:]

vae = SpectrumVAE()
optimizer = torch.optim.Adam(vae.parameters(), lr=2e-3)
for epoch in range(1, 31):
    vae.train()
    epoch_loss = 0.0
    for rows in torch.randperm(len(train), generator=generator).split(50):
        optimizer.zero_grad()
        loss = objective(train[rows], *vae(train[rows]))
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item() / 24
    if epoch % 5 == 0:
        vae.eval()
        with torch.no_grad():
            decoded, mean, logvar = vae(val)
            explained = 1 - (val - decoded).pow(2).mean() / val.pow(2).mean()
        print(f"epoch {epoch:2d}  loss {epoch_loss:8.3f}  explained on held-out {explained:.3f}")
