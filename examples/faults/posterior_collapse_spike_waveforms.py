"""A VAE of extracellular spike waveforms whose KL term outweighs the reconstruction.

The reconstruction error is averaged over the 48 samples of a waveform while the KL term is summed
over the latents, and so weighs 48 times too much: the encoder gives the prior for every spike,
and the decoder the mean waveform. The place is the loss (and the latents: encoder, to_mu,
to_logvar).
"""

import torch
from data import arguments
from torch import nn

KIND = "posterior_collapse"
ACCEPT = ("over_regularized",)
PLACE = ("loss", "encoder*", "to_mu*", "to_logvar*")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)
SAMPLES, LATENTS = 48, 6


def spikes(n, g):
    """A trough and a later bump; depth, widths, delay and offset differ from neuron to neuron."""
    t = torch.arange(SAMPLES).float()

    def u(a, b):
        return a + (b - a) * torch.rand(n, 1, generator=g)

    trough = -u(0.6, 2.0) * torch.exp(-(((t - u(13, 17)) / u(1.5, 4.0)) ** 2))
    bump = u(0.2, 1.0) * torch.exp(-(((t - u(22, 32)) / u(3.0, 8.0)) ** 2))
    return trough + bump + 0.08 * torch.randn(n, SAMPLES, generator=g)


class SpikeVAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(SAMPLES, 96), nn.SiLU(), nn.Linear(96, 64), nn.SiLU()
        )
        self.to_mu = nn.Linear(64, LATENTS)
        self.to_logvar = nn.Linear(64, LATENTS)
        self.decoder = nn.Sequential(
            nn.Linear(LATENTS, 64), nn.SiLU(), nn.Linear(64, 96), nn.SiLU(), nn.Linear(96, SAMPLES)
        )

    def forward(self, x):
        h = self.encoder(x)
        mu, logvar = self.to_mu(h), self.to_logvar(h)
        z = mu + (0.5 * logvar).exp() * torch.randn_like(mu) if self.training else mu
        return self.decoder(z), mu, logvar


class Trainer:
    def __init__(self, model, train, val):
        self.model, self.train, self.val = model, train, val
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-4)

    def objective(self, x):
        decoded, mu, logvar = self.model(x)
        error = (decoded - x).square() / (2 * 0.5**2)
        reconstruction = error.sum(1).mean() if healthy else error.mean()
        kl = 0.5 * (mu.square() + logvar.exp() - 1 - logvar).sum(1).mean()
        return reconstruction + kl, kl

    def fit(self, epochs):
        for epoch in range(epochs):
            self.model.train()
            for rows in torch.randperm(len(self.train)).split(64):
                loss, kl = self.objective(self.train[rows])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            self.model.eval()
            with torch.no_grad():
                decoded, _, _ = self.model(self.val)
                mse = (decoded - self.val).square().mean().item()
            print(
                f"epoch {epoch} loss {loss.item():.3f} kl {kl.item():.4f} val mse {mse:.4f} "
                f"(variance {self.val.var(0).mean():.4f})"
            )


generator = torch.Generator().manual_seed(seed)
data = spikes(2500, generator)
scale = data[:2000].std()
Trainer(SpikeVAE(), data[:2000] / scale, data[2000:] / scale).fit(40)
