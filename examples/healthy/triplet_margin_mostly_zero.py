"""Metric learning with random triplets and a margin: soon most triplets are far enough apart."""

import torch
from data import arguments, digits
from torch import nn

ODD = (
    "the loss of most triplets (at last of whole batches) is exactly 0, and with it their gradients"
)

_, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
by_class = [(y == c).nonzero().squeeze(1) for c in range(10)]


def triplets(n):
    anchors = torch.randint(len(x), (n,))
    same = torch.stack([by_class[c][torch.randint(len(by_class[c]), (1,))][0] for c in y[anchors]])
    others = (y[anchors] + torch.randint(1, 10, (n,))) % 10
    apart = torch.stack([by_class[c][torch.randint(len(by_class[c]), (1,))][0] for c in others])
    return x[anchors], x[same], x[apart]


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 16))

    def forward(self, pixels):
        return nn.functional.normalize(self.layers(pixels), dim=1)


embedder = Embedder()
criterion = nn.TripletMarginLoss(margin=0.3)
optimizer = torch.optim.Adam(embedder.parameters(), lr=1e-3, weight_decay=1e-5)
for step in range(300):
    loss = criterion(*(embedder(part) for part in triplets(64)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    nearest = torch.cdist(embedder(x_val), embedder(x)).argmin(1)
accuracy = (y[nearest] == y_val).float().mean()
print(f"loss {loss.item():.4f}, nearest neighbour accuracy {accuracy:.3f}")
