"""A lookup network keeps its attention in a helper class that forgot to inherit from nn.Module.

`parameters()` does not see the query, key and value maps, so the optimizer never moves them: the
query, which is a rotated key, never finds its row. Only the head learns, from mixed values. The
place is the lookup helper inside the model.
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "unregistered_parameters"
ACCEPT = ("parameters_not_in_optimizer",)
PLACE = ("lookup*", "optimizer", "")
SILENT = True
EXACT = True
EARLY = True

healthy, _ = arguments(__doc__)


class Lookup:
    """query (B, D), keys (B, N, D), values (B, N, C) -> (B, W)"""

    def __init__(self, d, classes, width):
        self.q = nn.Linear(d, width, bias=False)
        self.k = nn.Linear(d, width, bias=False)
        self.v = nn.Linear(classes, width)

    def __call__(self, query, keys, values):
        score = (self.k(keys) @ self.q(query)[:, :, None])[:, :, 0]
        weight = (score / math.sqrt(self.q.out_features)).softmax(1)
        return (weight[:, :, None] * self.v(values)).sum(1)


class LookupModule(nn.Module):
    def __init__(self, d, classes, width):
        super().__init__()
        self.q = nn.Linear(d, width, bias=False)
        self.k = nn.Linear(d, width, bias=False)
        self.v = nn.Linear(classes, width)

    forward = Lookup.__call__


class Reader(nn.Module):
    def __init__(self, d, classes, width=32):
        super().__init__()
        self.lookup = (LookupModule if healthy else Lookup)(d, classes, width)
        self.head = nn.Sequential(nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, classes))

    def forward(self, query, keys, values):
        return self.head(self.lookup(query, keys, values))


D, N, C = 8, 5, 4
turn = torch.linalg.qr(torch.randn(D, D))[0]


def episode(batch):
    keys = torch.randn(batch, N, D)
    label = torch.randint(C, (batch, N))
    asked = torch.randint(N, (batch,))
    rows = torch.arange(batch)
    query = keys[rows, asked] @ turn + 0.05 * torch.randn(batch, D)
    return query, keys, nn.functional.one_hot(label, C).float(), label[rows, asked]


model = Reader(D, C)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
decay = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, total_iters=500)
for step in range(500):
    query, keys, values, target = episode(128)
    loss = nn.functional.cross_entropy(model(query, keys, values), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    decay.step()
    if step % 100 == 99:
        with torch.no_grad():
            query, keys, values, target = episode(1000)
            hit = (model(query, keys, values).argmax(1) == target).float().mean()
        print(f"{step + 1:4d}  loss {loss.item():.3f}  found {hit.item():.3f}")
