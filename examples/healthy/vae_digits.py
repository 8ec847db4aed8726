"""A variational auto-encoder; the weight of the KL term grows in the first 100 steps."""

import torch
import torch.nn.functional as F
from data import arguments, batches, digits
from torch import nn

ODD = "a loss that rises while the KL weight grows, a hand-made sum of two losses"

_, seed = arguments(__doc__)
x, _, x_val, _ = digits(seed, raw=True)
x = x / 16


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(64, 64)
        self.mean = nn.Linear(64, 8)
        self.log_var = nn.Linear(64, 8)
        self.decode = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64))

    def forward(self, pixels):
        h = F.relu(self.body(pixels))
        mean, log_var = self.mean(h), self.log_var(h)
        z = mean + torch.randn_like(mean) * (0.5 * log_var).exp()
        return self.decode(z), mean, log_var


model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step, (pixels,) in enumerate(batches(x, size=64, steps=300, seed=seed)):
    scores, mean, log_var = model(pixels)
    rebuilt = F.binary_cross_entropy_with_logits(scores, pixels, reduction="sum") / len(pixels)
    kl = -0.5 * (1 + log_var - mean**2 - log_var.exp()).sum(1).mean()
    loss = rebuilt + min(1.0, step / 100) * kl
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"rebuilt {rebuilt.item():.2f}, kl {kl.item():.2f}")
