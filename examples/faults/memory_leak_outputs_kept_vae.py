"""A VAE of the digits whose two losses are kept in lists, with graphs that were retained.

backward() is called for each of the two losses, with retain_graph=True to make that work, and both
are appended as tensors for a plot. Every step's activations stay alive. The place is the loop. The
twin adds the losses, calls backward() once and keeps numbers.
"""

import os

import torch
import torch.nn.functional as F
from data import arguments, batches, digits
from torch import nn

KIND = "memory_leak"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
x, _, x_val, _ = digits(seed, raw=True)
x, x_val = x / 16, x_val / 16


class VAE(nn.Module):
    def __init__(self, code=8):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 2 * code))
        self.decoder = nn.Sequential(nn.Linear(code, 256), nn.ReLU(), nn.Linear(256, 64))

    def forward(self, x):
        mu, log_var = self.encoder(x).chunk(2, dim=1)
        z = mu + torch.randn_like(mu) * (0.5 * log_var).exp() if self.training else mu
        kl = 0.5 * (mu**2 + log_var.exp() - 1 - log_var).sum(1).mean()
        return self.decoder(z), kl


def memory():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


vae = VAE()
optimizer = torch.optim.Adam(vae.parameters(), lr=1e-3)
rec_losses, kl_losses = [], []
for step, (xb,) in enumerate(batches(x, size=128, steps=600, seed=seed), 1):
    logits, kl = vae(xb)
    rec = F.binary_cross_entropy_with_logits(logits, xb, reduction="sum") / len(xb)
    optimizer.zero_grad()
    if healthy:
        (rec + kl).backward()
        rec_losses.append(rec.item())
        kl_losses.append(kl.item())
    else:
        rec.backward(retain_graph=True)
        kl.backward(retain_graph=True)
        rec_losses.append(rec)
        kl_losses.append(kl)
    optimizer.step()
    if step % 60 == 0:
        vae.eval()
        with torch.no_grad():
            logits, kl = vae(x_val)
            val = F.binary_cross_entropy_with_logits(logits, x_val, reduction="sum") / len(x_val)
        vae.train()
        print(
            f"step {step}: train {rec.item():.2f}  val {val.item():.2f} + {kl.item():.2f}"
            f"  memory {memory():.0f} MB"
        )
