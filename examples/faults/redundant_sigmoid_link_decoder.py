"""A graph autoencoder for link prediction; the decoder returns probabilities, and the loss is the
one with logits.

`decode` was taken from a code base that used binary_cross_entropy. Now every pair has a "logit"
between 0 and 1, so the probability is never below a half. The loss falls a little (silent). The
place is the input of the loss. Exact.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "redundant_sigmoid"
ACCEPT = ()
PLACE = ("loss*", "")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def community_graph(nodes=300, groups=10, inside=0.35, outside=0.01):
    member = torch.randint(0, groups, (nodes,))
    same = member[:, None] == member[None, :]
    p = torch.where(same, torch.tensor(inside), torch.tensor(outside))
    upper = torch.triu(torch.rand(nodes, nodes) < p, diagonal=1)
    features = F.one_hot(member, groups) * 0.6 + 0.7 * torch.randn(nodes, groups)
    return features, upper.nonzero().t()


def normalised_adjacency(edges, nodes):
    a = torch.eye(nodes)
    a[edges[0], edges[1]] = 1
    a[edges[1], edges[0]] = 1
    d = a.sum(1).rsqrt()
    return d[:, None] * a * d[None, :]


class GraphConv(nn.Module):
    def __init__(self, fin, fout):
        super().__init__()
        self.lin = nn.Linear(fin, fout)

    def forward(self, x, adj):
        return adj @ self.lin(x)


class GAE(nn.Module):
    def __init__(self, fin, hidden=32, out=12):
        super().__init__()
        self.conv1 = GraphConv(fin, hidden)
        self.conv2 = GraphConv(hidden, out)
        self.bias = nn.Parameter(torch.zeros(1))

    def encode(self, x, adj):
        return self.conv2(F.relu(self.conv1(x, adj)), adj)

    def decode(self, z, pairs):
        score = (z[pairs[0]] * z[pairs[1]]).sum(-1) + self.bias
        return score if healthy else torch.sigmoid(score)


x, edges = community_graph()
n = len(x)
edges = edges[:, torch.randperm(edges.size(1))]
cut = int(0.8 * edges.size(1))
train_edges, test_edges = edges[:, :cut], edges[:, cut:]
adj = normalised_adjacency(train_edges, n)
linked = torch.zeros(n, n, dtype=torch.bool)
linked[edges[0], edges[1]] = linked[edges[1], edges[0]] = True


def negatives(k):
    pairs = torch.randint(0, n, (2, 2 * k + 50))
    return pairs[:, ~linked[pairs[0], pairs[1]]][:, :k]


test_pairs = torch.cat([test_edges, negatives(test_edges.size(1))], 1)
test_label = torch.cat(
    [torch.ones(test_edges.size(1)), torch.zeros(test_pairs.size(1) - test_edges.size(1))]
)
model = GAE(x.size(1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(150):
    model.train()
    optimizer.zero_grad()
    z = model.encode(x, adj)
    neg = negatives(cut)
    pairs = torch.cat([train_edges, neg], 1)
    label = torch.cat([torch.ones(cut), torch.zeros(neg.size(1))])
    loss = F.binary_cross_entropy_with_logits(model.decode(z, pairs), label)
    loss.backward()
    optimizer.step()
    if epoch % 15 == 14:
        model.eval()
        with torch.no_grad():
            out = model.decode(model.encode(x, adj), test_pairs)
        nll = F.binary_cross_entropy_with_logits(out, test_label)
        right = ((out > 0) == (test_label > 0.5)).float().mean()
        print(f"epoch {epoch + 1:3d} loss {loss:.3f} test nll {nll:.3f} accuracy {right:.3f}")
