"""Photos of the same whale shall lie close together: only pairs of one whale are trained on.

The loss pulls two views of one animal together. The half that pushes different animals apart was
to come "later, when mining is done"; without it the best place for all whales is one and the same
point. The place is the loss, the encoder.
The twin takes the other animals of the batch as the ones to keep apart (NT-Xent).
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "representation_collapse"
ACCEPT = ("wrong_loss",)
PLACE = ("loss*", "encoder", "output*", "encoder.4")
SILENT = True
EXACT = False
EARLY = False

WHALES = 40


def view(outline, g):
    """A photo of the outline of a fluke: stretched a little, shaded, with spray."""
    n = len(outline)
    gain = 1 + 0.25 * torch.randn(n, 1, generator=g)
    slope = 0.5 * torch.randn(n, 1, generator=g) * torch.linspace(-1, 1, 48)
    return outline * gain + slope + 0.6 * torch.randn(n, 48, generator=g)


def recall(encoder, flukes, g):
    with torch.no_grad():
        a = F.normalize(encoder(view(flukes, g)), dim=1)
        b = F.normalize(encoder(view(flukes, g)), dim=1)
    nearest = torch.cdist(a, b).argmin(1)
    spread = torch.pdist(a).mean().item()
    return (nearest == torch.arange(len(flukes))).float().mean().item(), spread


def main():
    healthy, seed = arguments(__doc__)
    g = torch.Generator().manual_seed(seed)
    basis = torch.randn(10, 48, generator=g) / 3
    train = torch.randn(400, 10, generator=g) @ basis
    unseen = torch.randn(WHALES, 10, generator=g) @ basis
    encoder = nn.Sequential(
        nn.Linear(48, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 16)
    )
    opt = torch.optim.Adam(encoder.parameters(), lr=1e-3)
    for step in range(1, 401):
        flukes = train[torch.randperm(400, generator=g)[:32]]
        a = F.normalize(encoder(view(flukes, g)), dim=1)
        b = F.normalize(encoder(view(flukes, g)), dim=1)
        if healthy:
            likeness = a @ b.T / 0.1
            target = torch.arange(32)
            loss = (F.cross_entropy(likeness, target) + F.cross_entropy(likeness.T, target)) / 2
        else:
            loss = (a - b).pow(2).sum(1).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 100 == 0:
            found, spread = recall(encoder, unseen, g)
            print(f"{step} loss {loss.item():.4f} found again {found:.2f} spread {spread:.3f}")


main()
