"""Contrastive learning of digits (NT-Xent, shifts and noise), then a linear probe on frozen
features."""

import torch
import torch.nn.functional as F
from data import arguments, batches, images
from torch import nn

ODD = (
    "the loss starts at ln 127 and never comes near 0; the labels are unused; the probe's net"
    " is frozen"
)

_, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)


def view(pixels):
    """Shifted by up to one pixel, another contrast, noise."""
    padded = F.pad(pixels, (1, 1, 1, 1), value=pixels.min().item())
    dx, dy = torch.randint(3, (2,)).tolist()
    scale = 0.7 + 0.6 * torch.rand(len(pixels), 1, 1, 1)
    return scale * padded[:, :, dy : dy + 8, dx : dx + 8] + 0.3 * torch.randn_like(pixels)


def nt_xent(a, b, temperature=0.3):
    z = F.normalize(torch.cat([a, b]), dim=1)
    similarity = (z @ z.T / temperature).fill_diagonal_(-1e9)
    n = len(a)
    partner = torch.cat([torch.arange(n) + n, torch.arange(n)])
    return F.cross_entropy(similarity, partner)


encoder = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
    nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.Flatten(),
)  # fmt: skip
projector = nn.Sequential(nn.Linear(512, 64), nn.ReLU(), nn.Linear(64, 24))
parameters = [*encoder.parameters(), *projector.parameters()]
optimizer = torch.optim.AdamW(parameters, lr=2e-3, weight_decay=1e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 230)
for (pixels,) in batches(x, size=64, steps=230, seed=seed):
    loss = nt_xent(projector(encoder(view(pixels))), projector(encoder(view(pixels))))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()

encoder.eval().requires_grad_(False)
mean = encoder(x).mean(0)
std = encoder(x).std(0) + 1e-3
probe = nn.Linear(512, 10)
probe_optimizer = torch.optim.Adam(probe.parameters(), lr=3e-3, weight_decay=1e-4)
for pixels, label in batches(x, y, size=64, steps=150, seed=seed):
    probe_loss = F.cross_entropy(probe((encoder(pixels) - mean) / std), label)
    probe_optimizer.zero_grad()
    probe_loss.backward()
    probe_optimizer.step()
with torch.no_grad():
    accuracy = (probe((encoder(x_val) - mean) / std).argmax(1) == y_val).float().mean()
print(f"contrastive loss {loss.item():.3f}, probe accuracy {accuracy:.3f}")
