"""A VAE of spectra with KL warm-up: the loss goes up for many epochs although the reconstruction
gets no worse than it should.

The person sees the training loss fall and then climb. The weight of the KL term grows from 0 to 1
over the first half, so the loss is a different one in each epoch; at a fixed weight it falls.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = (
    "the training loss rises over epochs 5 to 15: the weight of the KL term is warmed up to 1,"
    " and the loss at full weight (also printed) falls all the while"
)
_, seed = arguments(__doc__)

CHANNELS, LATENT, EPOCHS, WARMUP = 40, 3, 26, 15
NOISE = 0.15


def spectra(count, rng):
    """Two peaks of free place and height on a sloping ground: three things to find out."""
    channel = np.linspace(0, 1, CHANNELS)
    place, ratio, slope = (
        rng.uniform(0.2, 0.8, count),
        rng.uniform(0.3, 1, count),
        rng.normal(0, 1, count),
    )
    first = np.exp(-0.5 * ((channel - place[:, None]) / 0.08) ** 2)
    second = ratio[:, None] * np.exp(-0.5 * ((channel - 0.5) / 0.05) ** 2)
    rows = first + second + 0.3 * slope[:, None] * (channel - 0.5)
    return rows - rows.mean() + rng.normal(0, NOISE, rows.shape)


class SpectrumVAE(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(CHANNELS, width), nn.SiLU())
        self.mean, self.log_var = nn.Linear(width, LATENT), nn.Linear(width, LATENT)
        self.decoder = nn.Sequential(
            nn.Linear(LATENT, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU()
        )
        self.output = nn.Linear(width, CHANNELS)

    def forward(self, x):
        hidden = self.encoder(x)
        mean, log_var = self.mean(hidden), self.log_var(hidden)
        z = mean + torch.randn_like(mean) * (0.5 * log_var).exp()
        return self.output(self.decoder(z)), mean, log_var


def parts(model, x):
    """Minus log likelihood (up to a constant) and KL, both per spectrum."""
    output, mean, log_var = model(x)
    misfit = 0.5 * (output - x).pow(2).sum(1).mean() / NOISE**2
    kl = 0.5 * (mean.pow(2) + log_var.exp() - 1 - log_var).sum(1).mean()
    return misfit, kl


def main():
    data = torch.tensor(spectra(3000, np.random.default_rng(seed)), dtype=torch.float32)
    train, val = data[:2500], data[2500:]
    loader = DataLoader(TensorDataset(train), batch_size=50, shuffle=True)
    model = SpectrumVAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(EPOCHS):
        beta = min(1.0, epoch / WARMUP)
        model.train()
        total = 0.0
        for (x,) in loader:
            misfit, kl = parts(model, x)
            loss = misfit + beta * kl
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 20.0)
            optimizer.step()
            total += loss.item() / len(loader)
        model.eval()
        with torch.no_grad():
            misfit, kl = parts(model, val)
        print(
            f"epoch {epoch:2d}  beta {beta:.2f}  train loss {total:7.3f}  val misfit {misfit:7.3f}"
            f"  val kl {kl:6.3f}  at full weight {misfit + kl:7.3f}"
        )


if __name__ == "__main__":
    main()
