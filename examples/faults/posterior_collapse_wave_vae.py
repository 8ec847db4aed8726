"""A convolutional VAE learns waves of three shapes. The reconstruction error is the mean over the
samples of a wave, the divergence is the sum over the latent dimensions.

So one nat of divergence costs as much as the whole wave: the encoder gives up, every code has the
prior's mean and variance, and the decoder draws the same flat line whatever comes in. The place is
the layers of mean and variance.
"""

import torch
from data import arguments, waves
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "posterior_collapse"
ACCEPT = ()
PLACE = ("to_mu*", "to_logvar*", "encoder*", "loss")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


class WaveVAE(nn.Module):
    def __init__(self, latent=8):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(1, 16, 5, stride=2, padding=2),
            nn.GELU(),
            nn.Conv1d(16, 32, 5, stride=2, padding=2),
            nn.GELU(),
            nn.Flatten(),
            nn.Linear(320, 64),
            nn.GELU(),
        )
        self.to_mu, self.to_logvar = nn.Linear(64, latent), nn.Linear(64, latent)
        self.decoder = nn.Sequential(
            nn.Linear(latent, 64),
            nn.GELU(),
            nn.Linear(64, 320),
            nn.GELU(),
            nn.Unflatten(1, (32, 10)),
            nn.ConvTranspose1d(32, 16, 4, stride=2, padding=1),
            nn.GELU(),
            nn.ConvTranspose1d(16, 1, 4, stride=2, padding=1),
        )

    def forward(self, x):
        h = self.encoder(x)
        mu, logvar = self.to_mu(h), self.to_logvar(h)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp() if self.training else mu
        return self.decoder(z), mu, logvar


def elbo(x, out, mu, logvar):
    error = (x - out).pow(2)
    error = error.sum((1, 2)).mean() if healthy else error.mean()
    kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1).mean()
    return error + kl, kl


x, _ = waves(seed, n=1600)
x = x.transpose(1, 2)
train = DataLoader(TensorDataset(x[:1200]), batch_size=64, shuffle=True)
x_val = x[1200:]
model = WaveVAE()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(25):
    model.train()
    for (batch,) in train:
        loss, kl = elbo(batch, *model(batch))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        out, mu, logvar = model(x_val)
        val, kl = elbo(x_val, out, mu, logvar)
    print(
        f"epoch {epoch}: train {loss.item():.3f} val {val.item():.3f}"
        f" kl {kl.item():.3f} mse {(out - x_val).pow(2).mean().item():.4f}"
    )
