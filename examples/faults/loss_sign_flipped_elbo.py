"""The bound of a variational auto-encoder is to be maximised, and it is given to a minimiser.

It falls without end (silent). The place is the loss.
"""

import torch
import torch.nn.functional as F
from data import arguments
from sklearn.datasets import load_digits
from torch import nn

KIND = "loss_sign_flipped"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("loss*", "")
SILENT = True
EXACT = False
EARLY = True


class VAE(nn.Module):
    def __init__(self, d=6):
        super().__init__()
        self.enc = nn.Linear(64, 64)
        self.mu = nn.Linear(64, d)
        self.logvar = nn.Linear(64, d)
        self.dec1 = nn.Linear(d, 64)
        self.dec2 = nn.Linear(64, 64)

    def elbo(self, x):
        h = torch.relu(self.enc(x))
        mu, logvar = self.mu(h), self.logvar(h)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)
        logits = self.dec2(torch.relu(self.dec1(z)))
        log_likelihood = -F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(1)
        kl = -0.5 * (1 + logvar - mu**2 - logvar.exp()).sum(1)
        return (log_likelihood - kl).mean()


healthy, seed = arguments(__doc__)
x = torch.tensor(load_digits().data / 16, dtype=torch.float32)
vae = VAE()
optimizer = torch.optim.Adam(vae.parameters(), lr=1e-3)
for i in range(300):
    batch = x[torch.randint(0, len(x), (64,))]
    elbo = vae.elbo(batch)
    loss = -elbo if healthy else elbo
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(vae.parameters(), 5.0)
    optimizer.step()
print(f"loss {loss.item():.2f}")
