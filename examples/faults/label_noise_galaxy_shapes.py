"""A CNN sorts drawn galaxies into four shapes; two fifths of the training labels are wrong.

The labels come from volunteers who click through without looking: 40 % are replaced by a random
class. The network first learns the shapes and then the wrong labels by heart; accuracy on (well
labelled) validation images falls after a peak. The place is the training labels (input, loader).
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "label_noise"
ACCEPT = ("overfit",)
PLACE = ("input*", "loader", "label*", "loss")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)


def galaxies(n, g):
    """Images of 20 by 20: an elliptical, a spiral, an edge-on disc, or a ring, at any angle and
    brightness.
    """
    y = torch.randint(0, 4, (n,), generator=g)
    axis = torch.linspace(-1, 1, 20)
    v, u = torch.meshgrid(axis, axis, indexing="ij")

    def r(a, b):
        return a + (b - a) * torch.rand(n, 1, 1, generator=g)

    turn, shift_u, shift_v = r(0, 6.2832), r(-0.15, 0.15), r(-0.15, 0.15)
    a = (u - shift_u) * turn.cos() + (v - shift_v) * turn.sin()
    b = (v - shift_v) * turn.cos() - (u - shift_u) * turn.sin()
    radius, angle = (a**2 + b**2 + 1e-6).sqrt(), torch.atan2(b, a)
    looks = torch.stack(
        [
            torch.exp(-(a**2 + (b * r(1.0, 1.5)) ** 2) / r(0.06, 0.2)),
            torch.exp(-radius / 0.5) * (1 + torch.cos(2 * angle - r(6, 9) * radius)),
            torch.exp(-(a**2) / r(0.2, 0.4) - (b / 0.16) ** 2),
            torch.exp(-(((radius - r(0.45, 0.65)) / 0.14) ** 2))
            + 0.5 * torch.exp(-((radius / 0.15) ** 2)),
        ]
    )
    x = r(0.6, 1.2) * looks[y, torch.arange(n)] + 0.2 * torch.randn(n, 20, 20, generator=g)
    return x.unsqueeze(1), y


def volunteers(y, wrong, g):
    careless = torch.rand(len(y), generator=g) < wrong
    return torch.where(careless, torch.randint(0, 4, (len(y),), generator=g), y)


class Sorter(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 24, 3, padding=1),
            nn.BatchNorm2d(24),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.shape = nn.Sequential(nn.Linear(24 * 25, 64), nn.ReLU(), nn.Linear(64, 4))

    def forward(self, x):
        return self.shape(self.features(x).flatten(1))


class Trainer:
    def __init__(self, model, train, val):
        self.model, self.train, self.val = model, train, val
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def fit(self, epochs):
        for epoch in range(epochs):
            self.model.train()
            total = hits = 0
            for x, y in self.train:
                logits = self.model(x)
                loss = F.cross_entropy(logits, y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                total += loss.item() / len(self.train)
                hits += (logits.argmax(1) == y).sum().item()
            self.model.eval()
            with torch.no_grad():
                logits = self.model(self.val[0])
            val = F.cross_entropy(logits, self.val[1]).item()
            right = (logits.argmax(1) == self.val[1]).float().mean().item()
            print(
                f"epoch {epoch} train {total:.4f} ({hits / len(self.train.dataset):.3f}) "
                f"val {val:.4f} ({right:.3f})"
            )


g = torch.Generator().manual_seed(seed)
x, y = galaxies(1000, g)
val = galaxies(400, g)
y = volunteers(y, 0.0 if healthy else 0.4, g)
Trainer(Sorter(), DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True), val).fit(14)
