"""Vectors of ship tracks without labels, from two views of a track; nothing keeps them apart.

The other branch of the pair (as in SimSiam) is to be a constant for the loss. When the loss was
rewritten, the detach() and the predictor got lost: it is enough now that all vectors are the same,
and so they are within a few dozen steps.
The place is the encoder and the loss. The twin has a contrastive loss over the batch.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "representation_collapse"
ACCEPT = ("wrong_loss",)
PLACE = ("loss*", "encoder*", "project*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
TYPES = ("ferry", "trawler", "cargo", "pilot", "yacht")


def tracks(n, g):
    y = torch.randint(0, len(TYPES), (n,), generator=g)
    t = torch.linspace(0, 1, 32)
    rate = torch.tensor([2.0, 7.0, 0.5, 4.0, 3.0])[y, None]
    sway = torch.tensor([1.0, 0.4, 0.2, 1.5, 0.7])[y, None]
    phase = 6.28 * torch.rand(n, 1, generator=g)
    speed = torch.tensor([1.0, 0.3, 0.8, 1.3, 0.5])[y, None] + 0.15 * torch.randn(n, 1, generator=g)
    x = torch.stack([sway * torch.sin(6.28 * rate * t + phase), speed.expand(n, 32)], 1)
    return x + 0.1 * torch.randn(n, 2, 32, generator=g), y


def view(x, g):
    return x * (0.9 + 0.2 * torch.rand(len(x), 1, 1, generator=g)) + 0.15 * torch.randn(
        x.shape, generator=g
    )


def pair_loss(a, b):
    a, b = F.normalize(a, dim=1), F.normalize(b, dim=1)
    if healthy:
        target = torch.arange(len(a))
        scores = a @ b.T / 0.2
        return (F.cross_entropy(scores, target) + F.cross_entropy(scores.T, target)) / 2
    return 1 - (a * b).sum(1).mean()


class TrackNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(2, 16, 5, padding=2),
            nn.ReLU(),
            nn.Conv1d(16, 32, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.AdaptiveAvgPool1d(4),
            nn.Flatten(),
        )
        self.project = nn.Sequential(nn.Linear(128, 32), nn.ReLU(), nn.Linear(32, 16))

    def forward(self, x):
        return self.project(self.encoder(x))


def nearest_neighbour(model, x, y):
    with torch.no_grad():
        z = F.normalize(model(x), dim=1)
    near = (z[500:] @ z[:500].T).argmax(1)
    return (y[:500][near] == y[500:]).float().mean().item(), z.std(0).mean().item()


g = torch.Generator().manual_seed(seed)
x, _ = tracks(2000, g)
x_val, y_val = tracks(1000, g)
model = TrackNet()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(10):
    for rows in torch.randperm(len(x), generator=g).split(100):
        loss = pair_loss(model(view(x[rows], g)), model(view(x[rows], g)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    right, spread = nearest_neighbour(model, x_val, y_val)
    print(f"epoch {epoch}: loss {loss.item():.4f} neighbours {right:.3f} spread {spread:.4f}")
