"""A variational autoencoder of spectra with the weight of the KL term annealed from 0 to 1.

The total rises while the weight does, on training and validation alike; the error at full weight,
printed next to it, falls. At least one of the six latents stays unused, as there are only four
things to say.
"""

import torch
from data import arguments, batches
from torch import nn

ODD = (
    "the training loss rises for half of the run, because the weight of its second term does; a "
    "latent stays at the prior"
)

_, seed = arguments(__doc__)

CHANNELS, N = 48, 2600
g = torch.Generator().manual_seed(seed)
channel = torch.linspace(0, 1, CHANNELS)
centre = torch.tensor([0.2, 0.45, 0.6, 0.85])
heights = torch.exp(0.5 * torch.randn(N, 4, generator=g))
peaks = torch.exp(-((channel - centre[:, None]) ** 2) / 0.004)
spectra = heights @ peaks + 0.15 * torch.randn(N, CHANNELS, generator=g)
x, x_val = spectra[:2000], spectra[2000:]
mean, std = x.mean(0), x.std()
x, x_val = (x - mean) / std, (x_val - mean) / std
SIGMA2 = (0.15 / std.item()) ** 2  # what the spectrometer's noise is known to be


class SpectraVAE(nn.Module):
    def __init__(self, latent=6):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(CHANNELS, 64), nn.SiLU(), nn.Linear(64, 2 * latent))
        self.decoder = nn.Sequential(nn.Linear(latent, 64), nn.SiLU(), nn.Linear(64, CHANNELS))

    def forward(self, x):
        mu, logvar = self.encoder(x).chunk(2, -1)
        z = mu + torch.randn_like(mu) * (logvar / 2).exp() if self.training else mu
        error = (self.decoder(z) - x).pow(2).sum(1).mean() / (2 * SIGMA2)
        kl = 0.5 * (mu.pow(2) + logvar.exp() - 1 - logvar).mean(0)
        return error, kl


model = SpectraVAE()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1000, eta_min=1e-4)
for step, (batch,) in enumerate(batches(x, size=100, steps=1000, seed=seed), 1):
    model.train()
    beta = min(1.0, step / 500)
    error, kl = model(batch)
    loss = error + beta * kl.sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 100 == 0:
        model.eval()
        with torch.no_grad():
            error, kl = model(x_val)
        print(
            f"step {step} beta {beta:.1f} train {loss.item():.2f} "
            f"val {(error + beta * kl.sum()).item():.2f} bound {(error + kl.sum()).item():.2f} "
            f"active latents {(kl > 0.1).sum().item()}"
        )
