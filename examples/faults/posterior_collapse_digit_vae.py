"""Learns to draw digits with a variational autoencoder whose code says nothing about the picture.

The reconstruction error is averaged over the 64 pixels, the divergence is summed over the code, so
the latter weighs 64 times what it should. All pictures get the same code, and the decoder draws the
mean digit. The place is the loss.
The twin sums over the pixels, as the bound demands.
"""

import torch
from data import arguments, batches, images
from torch import nn

KIND = "posterior_collapse"
ACCEPT = ("over_regularized", "representation_collapse")
PLACE = ("loss*", "to_code", "encoder", "decoder")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


class DigitVAE(nn.Module):
    def __init__(self, code=8):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 16, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(), nn.Flatten(),
        )  # fmt: skip
        self.to_code = nn.Linear(128, 2 * code)
        self.decoder = nn.Sequential(nn.Linear(code, 96), nn.ReLU(), nn.Linear(96, 64))

    def forward(self, x):
        mu, logvar = self.to_code(self.encoder(x)).chunk(2, 1)
        z = mu + torch.exp(0.5 * logvar) * torch.randn_like(mu)
        return self.decoder(z).view_as(x), mu, logvar


def elbo_terms(model, x):
    logits, mu, logvar = model(x)
    error = nn.functional.binary_cross_entropy_with_logits(logits, x, reduction="none")
    error = error.sum((1, 2, 3)) if healthy else error.mean((1, 2, 3))
    divergence = 0.5 * (mu.square() + logvar.exp() - 1 - logvar).sum(1)
    return error.mean(), divergence.mean(), torch.sigmoid(logits)


x, _, x_val, _ = images(seed, raw=True)
x, x_val = x / 16, x_val / 16
model = DigitVAE()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step, (xb,) in enumerate(batches(x, size=64, steps=500, seed=seed), 1):
    error, divergence, _ = elbo_terms(model, xb)
    loss = error + divergence
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        with torch.no_grad():
            _, divergence, drawn = elbo_terms(model, x_val)
        miss = (drawn - x_val).square().mean().item()
        print(f"{step} loss {loss.item():.3f} val KL {divergence:.3f} pixel error {miss:.4f}")
