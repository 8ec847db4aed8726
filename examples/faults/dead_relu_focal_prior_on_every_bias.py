"""Landing spots in aerial patches by a heat-map head; the prior's bias goes to every convolution.

RetinaNet starts the bias of its last layer at -log((1 - p) / p), so that nothing is predicted at
first. The initialisation was written as a function for `model.apply` and so reaches every
convolution: with biases of -4.6 under them, nearly all ReLUs are off on all inputs. The place is
the convolutions of the trunk. The twin sets only the last layer's bias.
"""

import math

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "dead_relu"
ACCEPT = ("poor_weight_init",)
PLACE = ("trunk", "trunk.?", "trunk.?.bias")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
SIZE = 20


def patches(n, g):
    """A cross marks the spot; a ring of the same brightness marks nothing."""
    cross = torch.zeros(5, 5)
    cross[2, :] = cross[:, 2] = 1
    ring = torch.ones(5, 5)
    ring[1:4, 1:4] = 0
    x = 0.45 * torch.randn(n, 1, SIZE, SIZE, generator=g)
    heat = torch.zeros(n, 1, SIZE, SIZE)
    for i in range(n):
        for k, stamp in enumerate((cross, cross, ring, ring)):
            if k in (1, 3) and torch.rand((), generator=g) < 0.5:
                continue
            r, c = torch.randint(2, SIZE - 2, (2,), generator=g).tolist()
            x[i, 0, r - 2 : r + 3, c - 2 : c + 3] += stamp
            if k < 2:
                heat[i, 0, r, c] = 1
    return x, heat


class Spotter(nn.Module):
    def __init__(self, c=16):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(1, c, 3, padding=1), nn.ReLU(),
            nn.Conv2d(c, c, 3, padding=1), nn.ReLU(),
            nn.Conv2d(c, c, 3, padding=1), nn.ReLU(),
        )  # fmt: skip
        self.head = nn.Conv2d(c, 1, 1)
        (self.head if healthy else self).apply(self.init_prior)

    @staticmethod
    def init_prior(module, prior=0.01):
        if isinstance(module, nn.Conv2d):
            nn.init.constant_(module.bias, -math.log((1 - prior) / prior))

    def forward(self, x):
        return self.head(self.trunk(x))


def focal_loss(logits, target, gamma=2.0):
    bce = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
    p = torch.sigmoid(logits)
    wrong = torch.where(target > 0, 1 - p, p)
    return (wrong**gamma * bce).sum() / target.sum().clamp(min=1)


def hit_rate(model, loader):
    model.eval()
    hits = n = 0
    with torch.no_grad():
        for x, heat in loader:
            best = model(x).flatten(1).argmax(1)
            hits += heat.flatten(1)[torch.arange(len(x)), best].sum().item()
            n += len(x)
    return hits / n


g = torch.Generator().manual_seed(seed)
train_loader = DataLoader(TensorDataset(*patches(800, g)), batch_size=32, shuffle=True)
val_loader = DataLoader(TensorDataset(*patches(200, g)), batch_size=100)
model = Spotter()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(12):
    model.train()
    for x, heat in train_loader:
        optimizer.zero_grad()
        loss = focal_loss(model(x), heat)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} last loss {loss.item():.3f} hit rate {hit_rate(model, val_loader):.3f}")
