"""A VAE of handwritten digits whose latent variables say nothing.

The reconstruction loss went from `reduction="sum"` to the default, the mean over batch AND pixels,
"so that the numbers do not depend on the image size". The divergence is still summed over the
latents. It is now 64 times as heavy, the posterior becomes the prior, and the decoder paints one
average digit. The place is the loss. The twin sums over the pixels.
"""

import torch
from data import arguments, digits
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

KIND = "posterior_collapse"
ACCEPT = ()
PLACE = ("loss*", "to_mean", "to_logvar")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


class VAE(nn.Module):
    def __init__(self, pixels=64, hidden=128, latents=8):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(pixels, hidden), nn.ReLU())
        self.to_mean = nn.Linear(hidden, latents)
        self.to_logvar = nn.Linear(hidden, latents)
        self.decoder = nn.Sequential(
            nn.Linear(latents, hidden), nn.ReLU(), nn.Linear(hidden, pixels)
        )

    def encode(self, x):
        h = self.encoder(x)
        return self.to_mean(h), self.to_logvar(h)

    def forward(self, x):
        mean, logvar = self.encode(x)
        z = mean + torch.randn_like(mean) * (0.5 * logvar).exp() if self.training else mean
        return self.decoder(z), mean, logvar


def vae_loss(scores, x, mean, logvar):
    if healthy:
        reconstruction = F.binary_cross_entropy_with_logits(scores, x, reduction="sum") / len(x)
    else:
        reconstruction = F.binary_cross_entropy_with_logits(scores, x)
    divergence = -0.5 * (1 + logvar - mean**2 - logvar.exp()).sum(1).mean()
    return reconstruction + divergence, divergence


x, _, x_val, _ = digits(seed, raw=True)
x, x_val = x / 16, x_val / 16
loader = DataLoader(TensorDataset(x), batch_size=64, shuffle=True)
model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(1, 41):
    model.train()
    for (batch,) in loader:
        scores, mean, logvar = model(batch)
        loss, divergence = vae_loss(scores, batch, mean, logvar)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 4 == 0:
        model.eval()
        with torch.no_grad():
            scores, mean, logvar = model(x_val)
            val, val_divergence = vae_loss(scores, x_val, mean, logvar)
            explained = 1 - ((scores.sigmoid() - x_val) ** 2).mean() / x_val.var(0).mean()
        print(
            f"epoch {epoch:2d} train {loss:.3f} val {val:.3f} KL {val_divergence:.3f} "
            f"pixel variance explained {explained:.3f}"
        )
