"""A variational auto-encoder with weight 20 on the KL term from the first step on.

The latent variables say nothing; what is drawn is the same grey image for all. The loss falls
(silent). The place is the layers of mean and variance.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, digits
from torch import nn

KIND = "posterior_collapse"
ACCEPT = ("representation_collapse",)
PLACE = ("mean*", "log_var*", "decode*")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
x, _, x_val, _ = digits(seed, raw=True)
x = x / 16
beta = 1.0 if healthy else 20.0


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(64, 64)
        self.mean = nn.Linear(64, 6)
        self.log_var = nn.Linear(64, 6)
        self.decode = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 64), nn.Sigmoid())

    def forward(self, pixels):
        h = F.relu(self.body(pixels))
        mean, log_var = self.mean(h), self.log_var(h)
        z = mean + torch.randn_like(mean) * torch.exp(0.5 * log_var)
        return self.decode(z), mean, log_var


model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for (pixels,) in batches(x, size=64, steps=300, seed=seed):
    rebuilt, mean, log_var = model(pixels)
    error = F.binary_cross_entropy(rebuilt, pixels, reduction="sum") / len(pixels)
    kl = -0.5 * torch.sum(1 + log_var - mean.pow(2) - log_var.exp()) / len(pixels)
    loss = error + beta * kl
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"error {error.item():.2f}, kl {kl.item():.4f}")
