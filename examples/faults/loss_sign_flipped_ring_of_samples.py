"""A convolutional VAE for digits; the KL term has lost its minus sign.

`0.5 * sum(1 + logvar - mu^2 - exp(logvar))` is the negative divergence; added to the
reconstruction error it pays for means far from the prior. The loss falls below zero and on,
reconstructions look fine, samples from the prior are nothing. The place is the loss
(`elbo_terms`), the encoder's `to_mu`.
"""

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn

KIND = "loss_sign_flipped"
ACCEPT = ()
PLACE = ("loss", "to_mu*", "to_logvar*")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


class ConvVAE(nn.Module):
    def __init__(self, latent: int = 8, width: int = 24) -> None:
        super().__init__()
        self.encode = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1), nn.SiLU(), nn.Conv2d(width, 2 * width, 3, stride=2, padding=1), nn.SiLU(),  # noqa: E501
            nn.Flatten(), nn.Linear(2 * width * 16, 64), nn.SiLU(),
        )  # fmt: skip
        self.to_mu, self.to_logvar = nn.Linear(64, latent), nn.Linear(64, latent)
        self.decode = nn.Sequential(
            nn.Linear(latent, 64), nn.SiLU(), nn.Linear(64, 2 * width * 16), nn.SiLU(), nn.Unflatten(1, (2 * width, 4, 4)),  # noqa: E501
            nn.ConvTranspose2d(2 * width, width, 4, stride=2, padding=1), nn.SiLU(), nn.Conv2d(width, 1, 3, padding=1),  # noqa: E501
        )  # fmt: skip
        self.latent = latent

    def forward(self, x):
        h = self.encode(x)
        mu, logvar = self.to_mu(h), self.to_logvar(h).clamp(-8, 4)
        z = mu + (0.5 * logvar).exp() * torch.randn_like(mu)
        return self.decode(z), mu, logvar


def elbo_terms(logits, x, mu, logvar):
    recon = F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum((1, 2, 3)).mean()
    kl = (1 + logvar - mu.pow(2) - logvar.exp()).sum(1).mean()
    kl = -0.5 * kl if healthy else 0.5 * kl
    return recon, kl


def true_elbo(model, x):
    logits, mu, logvar = model(x)
    recon = F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum((1, 2, 3))
    return (
        recon + 0.5 * (mu.pow(2) + logvar.exp() - 1 - logvar).sum(1)
    ).mean().item(), recon.mean().item()


def coverage(model, x, n=500):
    """The mean distance of held-out digits to the nearest of n samples from the prior."""
    samples = model.decode(torch.randn(n, model.latent)).sigmoid().flatten(1)
    return torch.cdist(x.flatten(1), samples).min(1).values.mean().item()


def main(epochs: int = 14, beta_warmup: int = 8, lr: float = 2e-3) -> None:
    x, _, x_val, _ = images(seed, raw=True)
    x, x_val = (x / 16).clamp(0, 1), (x_val / 16).clamp(0, 1)
    model = ConvVAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for epoch in range(epochs):
        beta = min(1.0, (epoch + 1) / beta_warmup)
        model.train()
        losses = []
        for rows in torch.randperm(len(x)).split(32)[:-1]:
            logits, mu, logvar = model(x[rows])
            recon, kl = elbo_terms(logits, x[rows], mu, logvar)
            loss = recon + beta * kl
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 50.0)
            optimizer.step()
            losses.append(loss.item())
        if epoch % 3 == 1:
            model.eval()
            with torch.no_grad():
                bound, recon_val = true_elbo(model, x_val)
                print(
                    f"epoch {epoch + 1:2d} | loss {sum(losses) / len(losses):12.2f} | val recon {recon_val:.2f}"  # noqa: E501
                    f" | val -ELBO {bound:.2f} | samples' distance {coverage(model, x_val):.3f}"
                )


if __name__ == "__main__":
    main()
