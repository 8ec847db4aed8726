"""A siamese network on the digits with a triplet loss and a margin.

Late in the training most triplets satisfy the margin: their loss and gradient are exactly zero,
and now and then those of a whole small batch. Judged by nearest neighbours on held-out images.
"""

import torch
import torch.nn.functional as F
from data import arguments, digits
from torch import nn

ODD = "the loss is exactly zero in many late batches, and so are all gradients"

_, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
by_class = [torch.where(y == c)[0] for c in range(10)]
net = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 16))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)


def embed(images):
    return F.normalize(net(images), dim=1)


def draw(count):
    rows = []
    for _ in range(count):
        same, other = torch.randperm(10)[:2].tolist()
        a, p = by_class[same][torch.randperm(len(by_class[same]))[:2]].tolist()
        n = by_class[other][torch.randint(len(by_class[other]), (1,))].item()
        rows.append((a, p, n))
    return torch.tensor(rows).T


zero = 0
for step in range(1, 601):
    net.train()
    a, p, n = (embed(x[rows]) for rows in draw(16))
    loss = F.relu((a - p).square().sum(1) - (a - n).square().sum(1) + 0.3).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    zero += loss.item() == 0
    if step % 60 == 0:
        net.eval()
        with torch.no_grad():
            nearest = (embed(x_val) @ embed(x).T).argmax(1)
        accuracy = (y[nearest] == y_val).float().mean().item()
        print(
            f"step {step}: loss {loss.item():.4f}  zero so far {zero}  1-NN accuracy {accuracy:.3f}"
        )
