"""A variational autoencoder of gestures whose divergence term is turned up step by step.

The total loss stops falling and rises again while the weight of the divergence grows from 0 to 1.
With every step another sum is minimised; reconstruction stays good and the bound at full weight
improves, which is what counts.
"""

import math

import torch
from data import arguments
from torch import nn

ODD = "the total loss rises for epochs while the weight of the divergence is turned up by plan"
_, seed = arguments(__doc__)

POINTS, LATENT, EPOCHS, WARMUP = 24, 6, 24, 12


def gestures(count):
    """Loops drawn with a finger: an ellipse with its own size, tilt, start and tremor."""
    t = torch.arange(POINTS) * 2 * math.pi / POINTS
    wide, high = 0.6 + torch.rand(count, 1), 0.3 + 0.6 * torch.rand(count, 1)
    tilt = math.pi * (torch.rand(count, 1) - 0.5)
    bend = torch.randn(count, 1) * 0.3
    x, y = wide * torch.cos(t), high * torch.sin(t) + bend * torch.cos(2 * t)
    turned = torch.cat([x * tilt.cos() - y * tilt.sin(), x * tilt.sin() + y * tilt.cos()], 1)
    return turned + 0.08 * torch.randn(count, 2 * POINTS)


class GestureVAE(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(2 * POINTS, width), nn.ELU())
        self.mean, self.log_var = nn.Linear(width, LATENT), nn.Linear(width, LATENT)
        self.decoder = nn.Sequential(
            nn.Linear(LATENT, width), nn.ELU(), nn.Linear(width, 2 * POINTS)
        )

    def forward(self, x):
        h = self.encoder(x)
        mean, log_var = self.mean(h), self.log_var(h)
        z = mean
        if self.training:
            z = mean + torch.exp(0.5 * log_var) * torch.randn_like(mean)
        return self.decoder(z), mean, log_var


def terms(model, x, spread=0.25):
    rebuilt, mean, log_var = model(x)
    reconstruction = ((rebuilt - x).pow(2) / (2 * spread**2)).sum(1).mean()
    divergence = 0.5 * (mean.pow(2) + log_var.exp() - 1 - log_var).sum(1).mean()
    return reconstruction, divergence


def main():
    x = gestures(2600)
    mean, scale = x[:2200].mean(0), x[:2200].std()
    x = (x - mean) / scale
    x_train, x_val = x[:2200], x[2200:]
    model = GestureVAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(EPOCHS):
        weight = min(1.0, epoch / WARMUP)
        model.train()
        total = 0.0
        for rows in torch.randperm(len(x_train)).split(64):
            reconstruction, divergence = terms(model, x_train[rows])
            loss = reconstruction + weight * divergence
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        model.eval()
        with torch.no_grad():
            reconstruction, divergence = terms(model, x_val)
            explained = 1 - (model(x_val)[0] - x_val).pow(2).mean() / x_val.var()
        if epoch % 2 == 1:
            print(
                f"epoch {epoch + 1:2d} weight {weight:.2f} loss {total / len(x_train):7.2f} | val "
                f"reconstruction {reconstruction:6.2f} divergence {divergence:6.2f} "
                f"bound {reconstruction + divergence:6.2f} explained {explained:.3f}"
            )


main()
