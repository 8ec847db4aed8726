"""Finding leaf spots in field photographs: the prior of the output was set as bias everywhere.

For rare spots one starts the last layer's bias at -log((1 - p) / p), so that the first answers are
near the share of spots. The helper that does so is applied to the whole network and sets the bias
of each convolution; a hidden ReLU with a bias of -4.6 gives nothing for almost any patch.
The place is the hidden layers body.0 and body.2.
The twin sets the last layer alone.
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "dead_relu"
ACCEPT = ("poor_weight_init",)
PLACE = ("body", "body.0", "body.1", "body.2", "body.3")
SILENT = False
EXACT = False
EARLY = True


def leaves(n, g):
    """Leaves of 16 x 16 with up to two brown spots, and the mask of the spots."""
    yy, xx = torch.meshgrid(torch.arange(16.0), torch.arange(16.0), indexing="ij")
    image = 0.5 + 0.15 * torch.randn(n, 1, 16, 16, generator=g)
    image = image + 0.2 * torch.sin(xx / 2 + 6 * torch.rand(n, 1, 1, 1, generator=g))
    mask = torch.zeros(n, 1, 16, 16)
    for _ in range(2):
        c = torch.rand(n, 2, 1, 1, 1, generator=g) * 13 + 1
        r = torch.rand(n, 1, 1, 1, generator=g) * 2
        mask = torch.maximum(mask, ((yy - c[:, 0]) ** 2 + (xx - c[:, 1]) ** 2 <= r**2).float())
    image = image - 0.55 * mask
    return (image - 0.5) / 0.25, mask


def set_prior(module, p=0.01):
    if isinstance(module, nn.Conv2d):
        nn.init.constant_(module.bias, -math.log((1 - p) / p))


class SpotNet(nn.Module):
    def __init__(self, healthy):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(12, 12, 3, padding=1),
            nn.ReLU(),
        )
        self.mask = nn.Conv2d(12, 1, 1)
        if healthy:
            set_prior(self.mask)
        else:
            self.apply(set_prior)

    def forward(self, x):
        return self.mask(self.body(x))


def dice(logits, mask):
    p = (logits > 0).float()
    return (2 * (p * mask).sum() / (p.sum() + mask.sum() + 1e-6)).item()


healthy, seed = arguments(__doc__)
g = torch.Generator().manual_seed(seed + 5)
photos, masks = leaves(480, g)
photos_val, masks_val = leaves(120, g)
net = SpotNet(healthy)
opt = torch.optim.AdamW(net.parameters(), lr=3e-3)
for epoch in range(12):
    for idx in torch.randperm(480, generator=g).split(24):
        loss = nn.functional.binary_cross_entropy_with_logits(net(photos[idx]), masks[idx])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
    if epoch % 3 == 2:
        with torch.no_grad():
            out = net(photos_val)
            val = nn.functional.binary_cross_entropy_with_logits(out, masks_val)
        print(f"epoch {epoch + 1}: loss {loss:.4f} val {val:.4f} dice {dice(out, masks_val):.3f}")
