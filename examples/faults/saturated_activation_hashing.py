"""Deep hashing: digits get codes of 24 bits by tanh(beta * h), and beta grows so that the codes
become binary. The continuation is meant per epoch, but the hook sits in the loop over batches.

After a few dozen batches every tanh is at its end, where there is no slope, long before the network
has learnt which codes to give: the retrieval stays poor. The place is the hash layer.
"""

import torch
from data import arguments, digits
from torch import nn
from torch.nn import functional as F

KIND = "saturated_activation"
ACCEPT = ("vanishing_gradient",)
PLACE = ("hash*",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


class HashLayer(nn.Module):
    def __init__(self, width, bits):
        super().__init__()
        self.linear = nn.Linear(width, bits)
        self.norm = nn.LayerNorm(bits, elementwise_affine=False)
        self.squash = nn.Tanh()
        self.beta = 1.0

    def sharpen(self, factor=1.15):
        self.beta = min(self.beta * factor, 2000.0)

    def forward(self, h):
        return self.squash(self.beta * self.norm(self.linear(h)))


class HashNet(nn.Module):
    def __init__(self, bits=24):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU())
        self.hash = HashLayer(64, bits)

    def forward(self, x):
        return self.hash(self.trunk(x))


def pairwise(codes, labels):
    same = (labels[:, None] == labels[None]).float()
    logits = codes @ codes.T / codes.shape[1] * 6 - 2
    weight = torch.where(same > 0, 1 / same.mean(), 1 / (1 - same).mean()) / 2
    return F.binary_cross_entropy_with_logits(logits, same, weight=weight)


def precision(model, x, y, x_query, y_query, k=20):
    with torch.no_grad():
        base, query = model(x).sign(), model(x_query).sign()
    best = (query @ base.T).topk(k).indices
    return (y[best] == y_query[:, None]).float().mean()


x, y, x_val, y_val = digits(seed)
model = HashNet()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
for epoch in range(15):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(x)).split(64):
        loss = pairwise(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows) / len(x)
        if not healthy:
            model.hash.sharpen()
    if healthy:
        model.hash.sharpen()
    model.eval()
    with torch.no_grad():
        val = pairwise(model(x_val), y_val)
    print(
        f"epoch {epoch}: train {total:.3f} val {val:.3f}"
        f" precision at 20 {precision(model, x, y, x_val, y_val):.3f}"
    )
