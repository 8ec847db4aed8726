"""A graph autoencoder predicts links; its decoder already ends in a sigmoid and the loss is binary
cross-entropy with logits.

As in many copied GAE scripts, `decode` returns sigmoid(z z^T) and the loop feeds that into
binary_cross_entropy_with_logits. No pair can get a probability under one half. The place is the
loss (its input) / the decoder.
"""

import torch
import torch.nn.functional as F
from data import arguments
from sklearn.metrics import average_precision_score
from torch import nn

KIND = "redundant_sigmoid"
ACCEPT = ()
PLACE = ("loss", "decoder*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


def citation_graph(n=700, groups=9, g=None):
    """Papers in topics; a paper cites within its topic, and famous ones from anywhere. Words as features."""  # noqa: E501
    topic = torch.randint(0, groups, (n,), generator=g)
    fame = torch.exp(0.6 * torch.randn(n, generator=g))
    same = (topic[:, None] == topic[None]).float()
    p = (0.006 + 0.11 * same) * (fame[:, None] * fame[None]).sqrt()
    upper = torch.triu(torch.rand(n, n, generator=g) < p, 1)
    words = torch.rand(groups, 120, generator=g) ** 4
    x = (torch.rand(n, 120, generator=g) < 0.04 + 0.5 * words[topic]).float()
    return x, upper.nonzero().T


def normalised_adjacency(edges, n):
    a = torch.zeros(n, n)
    a[edges[0], edges[1]] = 1
    a = a + a.T + torch.eye(n)
    d = a.sum(1).rsqrt()
    return (d[:, None] * a * d[None]).to_sparse_csr()


class GraphConv(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.lin = nn.Linear(i, o)

    def forward(self, x, adj):
        return adj @ self.lin(x)


class InnerProductDecoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(1.0))
        self.bias = nn.Parameter(torch.tensor(0.0))

    def forward(self, z, pairs):
        logits = self.scale * (z[pairs[0]] * z[pairs[1]]).sum(1) + self.bias
        return logits if healthy else torch.sigmoid(logits)


class GAE(nn.Module):
    def __init__(self, i, hidden=48, out=16, dropout=0.3):
        super().__init__()
        self.conv1, self.conv2 = GraphConv(i, hidden), GraphConv(hidden, out)
        self.decoder = InnerProductDecoder()
        self.dropout = dropout

    def encode(self, x, adj):
        h = F.relu(self.conv1(F.dropout(x, self.dropout, self.training), adj))
        return self.conv2(F.dropout(h, self.dropout, self.training), adj)


g = torch.Generator().manual_seed(10 + seed)
x, edges = citation_graph(g=g)
n = len(x)
edges = edges[:, torch.randperm(edges.shape[1], generator=g)]
n_val = edges.shape[1] // 8
val_pos, train_pos = edges[:, :n_val], edges[:, n_val:]
known = torch.zeros(n, n, dtype=torch.bool)
known[edges[0], edges[1]] = known[edges[1], edges[0]] = True


def non_edges(count):
    pairs = torch.randint(0, n, (2, 2 * count), generator=g)
    keep = (pairs[0] != pairs[1]) & ~known[pairs[0], pairs[1]]
    return pairs[:, keep][:, :count]


adj = normalised_adjacency(train_pos, n)
val_pairs = torch.cat([val_pos, non_edges(n_val)], 1)
val_y = torch.cat([torch.ones(n_val), torch.zeros(val_pairs.shape[1] - n_val)])
model = GAE(x.shape[1])
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=1e-4)


@torch.no_grad()
def test():
    model.eval()
    out = model.decoder(model.encode(x, adj), val_pairs)
    prob = torch.sigmoid(out)
    acc = ((prob > 0.5).float() == val_y).float().mean().item()
    return F.binary_cross_entropy(prob, val_y).item(), average_precision_score(val_y, prob), acc


for epoch in range(1, 301):
    model.train()
    neg = non_edges(train_pos.shape[1])
    pairs = torch.cat([train_pos, neg], 1)
    label = torch.cat([torch.ones(train_pos.shape[1]), torch.zeros(neg.shape[1])])
    z = model.encode(x, adj)
    loss = F.binary_cross_entropy_with_logits(model.decoder(z, pairs), label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if epoch % 50 == 0:
        val, ap, acc = test()
        print(
            f"Epoch: {epoch:03d}, Loss: {loss:.4f}, val BCE: {val:.4f}, AP: {ap:.4f}, accuracy: {acc:.4f}"  # noqa: E501
        )
