"""A small detector whose rare-object bias, -log((1 - p) / p), is set in all convolutions, not only
the last.

With -4.6 in front of every ReLU hardly a unit ever opens: only the last bias learns, and no object
is found. The place is the convolutions of the backbone.
"""

import math

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "dead_relu"
ACCEPT = ("poor_weight_init",)
PLACE = ("backbone*",)
SILENT = False
EXACT = False
EARLY = True

PRIOR = 0.01

healthy, seed = arguments(__doc__)


class Scenes(Dataset):
    """16 x 16 pictures with noise and one to three plus signs; the target: their middles."""

    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.x = 0.5 * torch.randn(n, 1, 16, 16, generator=g)
        self.y = torch.zeros(n, 1, 16, 16)
        for i in range(n):
            for _ in range(int(torch.randint(1, 4, (1,), generator=g))):
                r, c = torch.randint(1, 15, (2,), generator=g).tolist()
                self.x[i, 0, r - 1 : r + 2, c] += 2
                self.x[i, 0, r, c - 1 : c + 2] += 2
                self.y[i, 0, r, c] = 1
        self.x = (self.x - 0.09) / 0.66

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(12, 12, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(12, 12, 3, padding=1),
            nn.ReLU(),
        )
        self.heat = nn.Conv2d(12, 1, 1)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
                if module is self.heat or not healthy:
                    nn.init.constant_(module.bias, -math.log((1 - PRIOR) / PRIOR))
                else:
                    nn.init.zeros_(module.bias)
        nn.init.normal_(self.heat.weight, std=0.01)

    def forward(self, x):
        return self.heat(self.backbone(x))


def focal(logits, target, gamma=2.0, alpha=0.75):
    ce = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
    p = logits.sigmoid() * target + (1 - logits.sigmoid()) * (1 - target)
    weight = alpha * target + (1 - alpha) * (1 - target)
    return (weight * (1 - p) ** gamma * ce).sum() / target.sum()


train_set, val_set = Scenes(500, seed), Scenes(120, 500 + seed)
detector = Detector()
optimizer = torch.optim.Adam(detector.parameters(), lr=3e-3)
for epoch in range(10):
    detector.train()
    for x, y in DataLoader(train_set, batch_size=25, shuffle=True):
        loss = focal(detector(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    detector.eval()
    with torch.no_grad():
        logits = detector(val_set.x)
        val = focal(logits, val_set.y).item()
        found = (logits > 0).float()
        both = (found * val_set.y).sum()
        f1 = (2 * both / (found.sum() + val_set.y.sum())).item()
print(f"loss {loss.item():.3f}, validation loss {val:.3f}, F1 {f1:.3f}")
