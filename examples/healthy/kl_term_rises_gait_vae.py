"""VAE of walking curves whose KL term rises from almost nothing to many nats as the loss falls.

People ask whether the KL term ought not to fall as well. It is the information that the code keeps
about the curve: at first the decoder makes no use of it, then it pays to keep more, as long as the
reconstruction gains more than the term costs. Only the sum is minimised, and the sum falls.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "the KL term rises during training: the code takes up information, and the sum falls"
_, seed = arguments(__doc__)

LENGTH, LATENT, NOISE = 48, 6, 0.15


def gait(count):
    """Knee angles: two steps with their own speed, height, lag and lean, and sensor noise."""
    t = torch.linspace(0, 1, LENGTH)
    speed = 1.5 + torch.rand(count, 1)
    lag = torch.rand(count, 1) * 2 - 1
    height = 0.6 + 0.8 * torch.rand(count, 1)
    lean = torch.randn(count, 1) * 0.4
    swing = torch.sin(2 * torch.pi * speed * t + lag)
    curve = height * (swing + 0.35 * torch.sin(4 * torch.pi * speed * t + 2 * lag)) + lean * t
    return curve + NOISE * torch.randn_like(curve)


class GaitVAE(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(LENGTH, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU()
        )
        self.mean = nn.Linear(width, LATENT)
        self.logvar = nn.Linear(width, LATENT)
        self.decoder = nn.Sequential(
            nn.Linear(LATENT, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, LENGTH),
        )

    def forward(self, x):
        features = self.encoder(x)
        mean, logvar = self.mean(features), self.logvar(features)
        z = mean + torch.randn_like(mean) * (0.5 * logvar).exp() if self.training else mean
        return self.decoder(z), mean, logvar


def negative_elbo(x, output):
    """Gaussian likelihood with the deviation of the sensor, up to a constant, and the KL term."""
    rebuilt, mean, logvar = output
    likelihood = (x - rebuilt).pow(2).sum(1).mean() / (2 * 2 * NOISE**2)
    kl = 0.5 * (mean.pow(2) + logvar.exp() - 1 - logvar).sum(1).mean()
    return likelihood, kl


def main():
    train, val = gait(2400), gait(600)
    loader = DataLoader(TensorDataset(train), batch_size=80, shuffle=True)
    model = GaitVAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(24):
        model.train()
        sums = torch.zeros(2)
        for (x,) in loader:
            likelihood, kl = negative_elbo(x, model(x))
            optimizer.zero_grad()
            (likelihood + kl).backward()
            optimizer.step()
            sums += torch.tensor([likelihood.item(), kl.item()])
        fit, kl = (sums / len(loader)).tolist()
        model.eval()
        with torch.no_grad():
            val_mse = (model(val)[0] - val).pow(2).mean()
        if epoch % 4 == 3 or epoch == 0:
            print(
                f"epoch {epoch:2d} loss {fit + kl:7.2f} = fit {fit:7.2f} + kl {kl:5.2f}  "
                f"val mse {val_mse:.4f} (variance {val.var():.3f}, noise {NOISE**2:.4f})"
            )


main()
