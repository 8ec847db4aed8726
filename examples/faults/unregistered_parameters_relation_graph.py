"""A relational graph network on a made-up citation graph; the weights of the relations are kept in
a plain dict.

`self.rel = {name: nn.Linear(...)}` isn't seen by `parameters()`: the relations' projections stay
as random as they were born, only the self-loops and the head learn. The place is the projections
`rel` of both layers.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "unregistered_parameters"
ACCEPT = ("parameters_not_in_optimizer", "frozen_parameters")
PLACE = ("layers*", "rel*", "*rel*", "optimizer")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

FIELDS, RELATIONS = 5, ("cites", "same_venue", "shares_author", "mentions")


def citation_graph(r, n=1200, words=160):
    """Papers of five fields. A paper's own words say little, its neighbours by the four relations say more.

    `cites` and `shares_author` mostly stay within the field, `mentions` goes mostly to the next field, `same_venue` is chance.
    """  # noqa: E501
    field = r.integers(0, FIELDS, n)
    topic = (r.random((FIELDS, words)) < 0.12) * 0.08
    x = (r.random((n, words)) < 0.05 + topic[field]).astype(np.float32)
    by_field = [np.flatnonzero(field == k) for k in range(FIELDS)]
    edges = {}
    for name, degree, faithful, shift in (
        ("cites", 4, 0.6, 0),
        ("same_venue", 5, 0.2, 0),
        ("shares_author", 2, 0.6, 0),
        ("mentions", 4, 0.65, 1),
    ):
        source, target = [], []
        for i in range(n):
            for _ in range(r.poisson(degree)):
                own = r.random() < faithful
                source.append(
                    r.choice(by_field[(field[i] + shift) % FIELDS]) if own else r.integers(0, n)
                )
                target.append(i)
        edges[name] = torch.tensor(np.stack([source, target]))
    return torch.tensor(x), torch.tensor(field), edges


def adjacency(edge, n):
    degree = torch.bincount(edge[1], minlength=n).clamp(min=1).float()
    return torch.sparse_coo_tensor(edge.flip(0), 1 / degree[edge[1]], (n, n)).coalesce()


class RelationalConv(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.own = nn.Linear(i, o)
        rel = {name: nn.Linear(i, o, bias=False) for name in RELATIONS}
        self.rel = nn.ModuleDict(rel) if healthy else rel
        self.norm = nn.LayerNorm(o)

    def forward(self, h, graph):
        out = self.own(h)
        for name, a in graph.items():
            out = out + torch.sparse.mm(a, self.rel[name](h))
        return self.norm(out)


class RGCN(nn.Module):
    def __init__(self, features, hidden=16, dropout=0.4):
        super().__init__()
        self.layers = nn.ModuleList(
            [RelationalConv(features, hidden), RelationalConv(hidden, hidden)]
        )
        self.head = nn.Linear(hidden, FIELDS)
        self.dropout = dropout

    def forward(self, x, graph):
        h = F.dropout(x, self.dropout, self.training)
        for layer in self.layers:
            h = F.dropout(F.relu(layer(h, graph)), self.dropout, self.training)
        return self.head(h)


r = np.random.default_rng(seed)
x, y, edges = citation_graph(r)
x = x / x.sum(1, keepdim=True).clamp(min=1) * 8
graph = {name: adjacency(edge, len(x)) for name, edge in edges.items()}
order = torch.tensor(r.permutation(len(x)))
train, val, test = order[:700], order[700:900], order[900:]

model = RGCN(x.shape[1])
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=5e-4)
print(f"{sum(p.numel() for p in model.parameters())} parameters")
best, kept, patience = 0.0, None, 0
for epoch in range(400):
    model.train()
    logits = model(x, graph)
    loss = F.cross_entropy(logits[train], y[train])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

    model.eval()
    with torch.no_grad():
        logits = model(x, graph)
        accuracy = (logits[val].argmax(1) == y[val]).float().mean().item()
        val_loss = F.cross_entropy(logits[val], y[val]).item()
    patience += 1
    if accuracy > best:
        best, patience, kept = (
            accuracy,
            0,
            (logits[test].argmax(1) == y[test]).float().mean().item(),
        )
    if epoch % 40 == 0:
        print(
            f"epoch {epoch:3d}  loss {loss.item():.3f}  val loss {val_loss:.3f}  val accuracy {accuracy:.3f}"  # noqa: E501
        )
    if patience >= 60 and epoch >= 150:
        break
print(f"stopped at {epoch}: best val accuracy {best:.3f}, test accuracy {kept:.3f}")
