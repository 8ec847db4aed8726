"""Lays a chain of beads in the plane so that all distances fit; the distance matrix takes the
root of its zero diagonal.

The person computes all distances of the predicted beads, each to itself included, by the root of
the sum of squares. Forward that is fine, backward the root of zero has an infinite slope, which
times zero makes the first gradient NaN. The place is the loss (the norm inside it).
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "division_by_zero_norm"
ACCEPT = ("exploding_gradient",)
PLACE = ("loss", "model", "head*", "encoder*")
SILENT = False
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

BEADS = 10


def chains(count):
    """Kinds of the beads (each bends the chain its own way) and where the beads come to lie."""
    bend = torch.tensor([-0.9, -0.2, 0.3, 0.8])
    kinds = torch.randint(0, 4, (count, BEADS))
    neighbours = 0.2 * (kinds == kinds.roll(1, 1)).float()
    turn = bend[kinds] + neighbours + 0.05 * torch.randn(count, BEADS)
    heading = turn.cumsum(1)
    steps = torch.stack([heading.cos(), heading.sin()], -1)
    return kinds, steps.cumsum(1)


def pairwise_distances(places):
    difference = places.unsqueeze(2) - places.unsqueeze(1)
    squared = difference.pow(2).sum(-1)
    if healthy:
        squared = squared + 1e-8
    return squared.sqrt()


class FoldNet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.embed = nn.Embedding(4, 16)
        self.encoder = nn.GRU(16, width, batch_first=True, bidirectional=True)
        self.head = nn.Sequential(nn.Linear(2 * width, 64), nn.GELU(), nn.Linear(64, 2))

    def forward(self, kinds):
        hidden, _ = self.encoder(self.embed(kinds))
        return self.head(hidden).cumsum(1)


def distance_loss(predicted, true):
    return (pairwise_distances(predicted) - pairwise_distances(true)).pow(2).mean()


def main():
    kinds, places = chains(1250)
    loader = DataLoader(TensorDataset(kinds[:1000], places[:1000]), batch_size=40, shuffle=True)
    model = FoldNet()
    optimizer = torch.optim.Adam(model.parameters())
    epochs = 14
    for epoch in range(epochs):
        for group in optimizer.param_groups:
            group["lr"] = 2e-3 * (1 + math.cos(math.pi * epoch / epochs))
        model.train()
        total, count = 0.0, 0
        for batch, target in loader:
            optimizer.zero_grad()
            loss = distance_loss(model(batch), target)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 2.0)
            optimizer.step()
            total, count = total + loss.item(), count + 1
        model.eval()
        with torch.no_grad():
            val = distance_loss(model(kinds[1000:]), places[1000:]).sqrt().item()
        print(f"epoch {epoch:2d}: loss {total / count:.4f}, val RMSD of distances {val:.4f}")


if __name__ == "__main__":
    main()
