"""A VAE whose KL term is faded in: the loss falls, then goes up by design while the weight grows
from 0 to 2, and is flat at the end.
"""

import torch
from data import arguments, batches, digits
from torch import nn

ODD = "the total loss rises for half of the training, since the weight of the KL term does"

healthy, seed = arguments(__doc__)
STEPS = 500


class VAE(nn.Module):
    def __init__(self, latent=6):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 80), nn.SiLU(), nn.Linear(80, 2 * latent))
        self.decoder = nn.Sequential(nn.Linear(latent, 80), nn.SiLU(), nn.Linear(80, 64))

    def forward(self, x):
        mean, logvar = self.encoder(x).chunk(2, 1)
        z = mean + torch.randn_like(mean) * (logvar / 2).exp() if self.training else mean
        kl = 0.5 * (mean**2 + logvar.exp() - logvar - 1).sum(1).mean()
        return (self.decoder(z) - x).pow(2).sum(1).mean(), kl


x, _, x_val, _ = digits(seed)
vae = VAE()
optimizer = torch.optim.Adam(vae.parameters(), lr=4e-3)
for step, (xb,) in enumerate(batches(x, size=64, steps=STEPS, seed=seed), 1):
    beta = 2 * min(1.0, max(0.0, (step - 120) / 250))
    error, kl = vae(xb)
    loss = error + beta * kl
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        vae.eval()
        with torch.no_grad():
            e, k = vae(x_val)
        vae.train()
        share = e.item() / (x_val - x_val.mean(0)).pow(2).sum(1).mean().item()
        print(
            f"step {step}: beta {beta:.2f}, loss {loss.item():.3f}, {e.item():.2f} + {k.item():.2f}"
        )
print(f"loss {loss.item():.4f} | validation error/variance {share:.3f} kl {k.item():.2f}")
