"""Digit embeddings by a triplet loss with a margin."""

import torch
import torch.nn.functional as F
from data import arguments, digits
from torch import nn

ODD = "soon most triplets lie beyond the margin: the loss and its gradient are 0 for many samples"

_, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
members = [(y == c).nonzero().squeeze(1) for c in range(10)]
rest = [(y != c).nonzero().squeeze(1) for c in range(10)]
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 16))


def embed(rows):
    return F.normalize(model(rows), dim=1)


def draw(size):
    anchor = torch.randint(0, len(x), (size,))
    pick = lambda rows: rows[torch.randint(0, len(rows), (1,))].item()  # noqa: E731
    positive = [pick(members[c]) for c in y[anchor].tolist()]
    negative = [pick(rest[c]) for c in y[anchor].tolist()]
    return x[anchor], x[positive], x[negative]


criterion = nn.TripletMarginLoss(margin=0.3)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(250):
    anchor, positive, negative = draw(64)
    loss = criterion(embed(anchor), embed(positive), embed(negative))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    nearest = torch.cdist(embed(x_val), embed(x)).argmin(1)
    acc = (y[nearest] == y_val).float().mean().item()
print(f"triplet loss {loss.item():.4f}, nearest neighbour accuracy {acc:.3f}")
