"""Vectors of digits by triplets: a margin that most triplets keep after a while."""

import torch
from data import arguments, digits
from torch import nn

ODD = "the loss becomes exactly 0 in some steps, and so do all gradients"

_, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
by_class = [(y == c).nonzero()[:, 0] for c in range(10)]


def draw(classes):
    return torch.stack(
        [rows[torch.randint(len(rows), ())] for rows in (by_class[c] for c in classes)]
    )


encoder = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 16))
criterion = nn.TripletMarginLoss(margin=1.0)
optimizer = torch.optim.Adam(encoder.parameters(), lr=3e-3)
for step in range(250):
    classes = torch.randint(10, (32,))
    others = (classes + torch.randint(1, 10, (32,))) % 10
    anchor, same, other = (x[draw(c.tolist())] for c in (classes, classes, others))
    loss = criterion(encoder(anchor), encoder(same), encoder(other))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
