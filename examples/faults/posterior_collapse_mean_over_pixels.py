"""A VAE of spectral frames; the reconstruction is averaged over bins, the KL is summed over the
code.

`F.mse_loss` with its default reduction divides the reconstruction by 64 bins (and by the batch),
while the KL counts in full, so that beta is 64 in effect. It pays to send nothing: the posterior is
the prior, the decoder gives the mean spectrum. The loss falls all the same. The place is the loss.
The twin sums over the bins.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.distributions import Normal, kl_divergence

KIND = "posterior_collapse"
ACCEPT = ()
PLACE = ("loss*", "encoder", "encoder.2", "to_code")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
BINS, CODE = 64, 4


def frames(count):
    """Log spectra with a fundamental, two resonances and a tilt."""
    bins = torch.arange(BINS).float()
    pitch, tilt = 5 + 4 * torch.rand(count, 1), torch.rand(count, 1)
    low, high = 8 + 16 * torch.rand(count, 1), 34 + 22 * torch.rand(count, 1)
    comb = 0.4 * torch.cos(6.28 * bins / pitch)
    peaks = 1.6 * torch.exp(-(((bins - low) / 4) ** 2)) + 1.2 * torch.exp(
        -(((bins - high) / 6) ** 2)
    )
    return comb + peaks - 1.5 * tilt * bins / BINS + 0.15 * torch.randn(count, BINS)


class Vae(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(BINS, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU()
        )
        self.to_code = nn.Linear(width, 2 * CODE)
        self.decoder = nn.Sequential(
            nn.Linear(CODE, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, BINS),
        )

    def posterior(self, x):
        mean, log_std = self.to_code(self.encoder(x)).chunk(2, -1)
        return Normal(mean, log_std.clamp(-6, 3).exp())

    def forward(self, x):
        posterior = self.posterior(x)
        code = posterior.rsample() if self.training else posterior.mean
        return self.decoder(code), kl_divergence(posterior, Normal(0.0, 1.0)).sum(-1).mean()


def negative_elbo(model, x, noise=0.3):
    made, kl = model(x)
    if healthy:
        reconstruction = F.mse_loss(made, x, reduction="none").sum(-1).mean() / (2 * noise**2)
    else:
        reconstruction = F.mse_loss(made, x) / (2 * noise**2)
    return reconstruction + kl, made, kl


x, x_val = frames(1600), frames(400)
center = x.mean(0)
x, x_val = x - center, x_val - center
model = Vae()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
epochs = 14

for epoch in range(epochs):
    for group in optimizer.param_groups:
        group["lr"] = 2e-3 * (1 - epoch / epochs)
    model.train()
    for batch in x[torch.randperm(len(x))].split(40):
        loss, _, kl = negative_elbo(model, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        val_loss, made, kl = negative_elbo(model, x_val)
        explained = 1 - (made - x_val).square().mean().item() / x_val.square().mean().item()
    print(
        f"epoch {epoch:2d} loss {loss.item():.3f} val loss {val_loss:.3f} "
        f"kl {kl:.4f} explained {explained:.3f}"
    )
print(f"validation share of variance explained {explained:.3f}, kl {kl:.4f} nats")
