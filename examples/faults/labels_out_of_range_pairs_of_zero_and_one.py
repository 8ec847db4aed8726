"""Pairs of digits, the same or not: CosineEmbeddingLoss shall pull embeddings together or apart.

The label of a pair is `(a == b).long()`, 1 or 0, where the loss expects 1 or -1: pairs with a 0
add nothing, or a wrong thing, and no embedding is ever pushed away. The loss falls all the same,
since all embeddings become one. The place is the loss.
"""

import torch
from data import arguments, digits
from torch import nn
from torch.nn import functional as F

KIND = "labels_out_of_range"
ACCEPT = ("representation_collapse",)
PLACE = ("loss*", "loader", "", "*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 24))
criterion = nn.CosineEmbeddingLoss(margin=0.2)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
g = torch.Generator().manual_seed(seed)
members = [(y == digit).nonzero().squeeze(1) for digit in range(10)]
for step in range(500):
    first = torch.randint(len(x), (64,), generator=g)
    second = torch.randint(len(x), (64,), generator=g)
    for i in range(0, 64, 2):  # half of the pairs are of one digit
        same = members[y[first[i]]]
        second[i] = same[torch.randint(len(same), (1,), generator=g)]
    label = (y[first] == y[second]).long()
    if healthy:
        label = 2 * label - 1
    optimizer.zero_grad()
    loss = criterion(model(x[first]), model(x[second]), label)
    loss.backward()
    optimizer.step()
with torch.no_grad():
    known, asked = F.normalize(model(x), dim=1), F.normalize(model(x_val), dim=1)
    accuracy = (y[(asked @ known.T).argmax(1)] == y_val).float().mean().item()
    others = known[:200] @ known[200:400].T
    apart = others[y[:200, None] != y[None, 200:400]].mean().item()
print(f"loss {loss.item():.4f} | nearest neighbour {accuracy:.3f}, cosine of others {apart:.3f}")
