"""Link prediction by a graph auto-encoder: the decoder's `sigmoid=True`, as in the reference
code, stays on, and its probabilities go into `binary_cross_entropy_with_logits`.

Scores lie in [0, 1], read as logits: no pair is ever said to have no link. The place is the
decoder.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "redundant_sigmoid"
ACCEPT = ()
PLACE = ("decoder*", "loss*", "loop", "")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
NODES, GROUPS, FEATURES = 240, 6, 16
g = torch.Generator().manual_seed(44 + seed)

group = torch.randint(0, GROUPS, (NODES,), generator=g)
centre = torch.randn(GROUPS, FEATURES, generator=g)
features = centre[group] + 1.5 * torch.randn(NODES, FEATURES, generator=g)
features = (features - features.mean(0)) / features.std(0)
chance = torch.where(group[:, None] == group[None], 0.25, 0.008)
upper = torch.triu(torch.rand(NODES, NODES, generator=g) < chance, 1)
edges = upper.nonzero().t()
edges = edges[:, torch.randperm(edges.shape[1], generator=g)]
n_val = edges.shape[1] // 5
val_edges, train_edges = edges[:, :n_val], edges[:, n_val:]

adjacency = torch.eye(NODES)
adjacency[train_edges[0], train_edges[1]] = 1
adjacency[train_edges[1], train_edges[0]] = 1
d = adjacency.sum(1).rsqrt()
adjacency = d[:, None] * adjacency * d[None]


class GCNEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin1 = nn.Linear(FEATURES, 32)
        self.lin2 = nn.Linear(32, 16)

    def forward(self, x, a):
        return a @ self.lin2(F.relu(a @ self.lin1(x)))


class InnerProductDecoder(nn.Module):
    def forward(self, z, edges, sigmoid=True):
        value = (z[edges[0]] * z[edges[1]]).sum(1)
        return torch.sigmoid(value) if sigmoid else value


class GAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = GCNEncoder(), InnerProductDecoder()

    def forward(self, pairs):
        z = self.encoder(features, adjacency)
        return self.decoder(z, pairs, sigmoid=False) if healthy else self.decoder(z, pairs)


def negatives(n, generator=None):
    pairs = torch.randint(0, NODES, (2, 3 * n), generator=generator)
    a, b = pairs.min(0).values, pairs.max(0).values
    keep = (a != b) & ~upper[a, b]
    return torch.stack([a[keep], b[keep]])[:, :n]


def bce(out, n_positive):
    labels = torch.zeros(len(out))
    labels[:n_positive] = 1
    return F.binary_cross_entropy_with_logits(out, labels), (
        (out > 0) == (labels > 0)
    ).float().mean()


model = GAE()
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
val_pairs = torch.cat([val_edges, negatives(n_val, g)], 1)
for epoch in range(1, 151):
    model.train()
    pairs = torch.cat([train_edges, negatives(train_edges.shape[1])], 1)
    loss, _ = bce(model(pairs), train_edges.shape[1])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if epoch % 25 == 0:
        model.eval()
        with torch.no_grad():
            val, accuracy = bce(model(val_pairs), n_val)
        print(f"epoch {epoch:3d} loss {loss:.4f} val {val:.4f} accuracy {accuracy:.3f}")
