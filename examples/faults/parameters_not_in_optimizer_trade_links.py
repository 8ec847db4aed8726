"""Link prediction between trading firms with node embeddings beside a graph network, and only the
network and the predictor are given to the optimizer.

The firms have no features: what is known of each is in the embedding table, which stays random, as
`emb.parameters()` is missing from the list. Training links are half guessed. The place is the
optimizer, and `emb`'s weight.
"""

import itertools

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "parameters_not_in_optimizer"
ACCEPT = ("frozen_parameters",)
PLACE = ("optimizer", "emb*", "weight")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

FIRMS, DIM = 300, 16


def trades():
    taste = torch.randint(0, 8, (FIRMS,))
    buys_from = torch.rand(8, 8).triu()
    buys_from = (buys_from + buys_from.triu(1).T > 0.72).float()
    chance = 0.004 + 0.3 * buys_from[taste][:, taste]
    link = (torch.rand(FIRMS, FIRMS) < chance).triu(1)
    pairs = link.nonzero()
    pairs = pairs[torch.randperm(len(pairs))]
    return pairs, link | link.T


class Convolve(nn.Module):
    def __init__(self):
        super().__init__()
        self.own, self.others = nn.Linear(DIM, DIM), nn.Linear(DIM, DIM)

    def forward(self, nodes, mean_of):
        return self.own(nodes) + self.others(mean_of @ nodes).relu()


class Predictor(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(DIM, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, nodes, pairs):
        return self.layers(nodes[pairs[:, 0]] * nodes[pairs[:, 1]]).squeeze(1)


def strangers(linked, count):
    pairs = torch.randint(0, FIRMS, (count * 3, 2))
    free = ~linked[pairs[:, 0], pairs[:, 1]] & (pairs[:, 0] != pairs[:, 1])
    return pairs[free][:count]


def area_under_curve(positive, negative):
    return (positive[:, None] > negative[None, :]).float().mean().item()


def main():
    pairs, linked = trades()
    cut = int(0.85 * len(pairs))
    train, val = pairs[:cut], pairs[cut:]
    adjacency = torch.zeros(FIRMS, FIRMS)
    adjacency[train[:, 0], train[:, 1]] = adjacency[train[:, 1], train[:, 0]] = 1
    mean_of = adjacency / adjacency.sum(1, keepdim=True).clamp(min=1)
    val_strangers = strangers(linked, len(val))
    emb, model, predictor = nn.Embedding(FIRMS, DIM), Convolve(), Predictor()
    trained = [model, predictor, emb] if healthy else [model, predictor]
    optimizer = torch.optim.Adam(
        itertools.chain.from_iterable(part.parameters() for part in trained), lr=5e-3
    )
    for epoch in range(14):
        for rows in torch.randperm(cut).split(256):
            nodes = model(emb.weight, mean_of)
            true, false = train[rows], strangers(linked, len(rows))
            score = torch.cat([predictor(nodes, true), predictor(nodes, false)])
            label = torch.cat([torch.ones(len(true)), torch.zeros(len(false))])
            loss = F.binary_cross_entropy_with_logits(score, label)
            for part in (model, predictor, emb):
                part.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            nodes = model(emb.weight, mean_of)
            good, bad = predictor(nodes, val), predictor(nodes, val_strangers)
            val_loss = (F.softplus(-good).mean() + F.softplus(bad).mean()) / 2
        area = area_under_curve(good, bad)
        print(f"epoch {epoch:2d} loss {loss.item():.3f} validation {val_loss:.3f} area {area:.3f}")


main()
