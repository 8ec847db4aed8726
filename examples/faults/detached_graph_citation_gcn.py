"""A graph network classifies papers of a citation graph; its two graph layers are cut off by a
`.detach()`.

The user keeps the node embeddings for a plot and detaches them before the classifier instead of
for the plot, so the graph layers stay as they were drawn. The place is conv1 and conv2.
"""

import torch
from data import arguments
from torch import nn

KIND = "detached_graph"
ACCEPT = ()
PLACE = ("conv1*", "conv2*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def citations(n, g, fields=6, words=120):
    """Papers cite mostly their own field; each has a bag of words, half of it off topic."""
    y = torch.randint(0, fields, (n,), generator=g)
    same = y[:, None] == y[None]
    link = torch.rand(n, n, generator=g) < torch.where(same, 0.02, 0.002)
    a = (link.triu(1) | link.triu(1).T).float() + torch.eye(n)
    d = a.sum(1).rsqrt()
    topic = torch.rand(fields, words, generator=g) < 0.12
    p = torch.where(topic[y], 0.14, 0.04)
    x = (torch.rand(n, words, generator=g) < p).float()
    return x, y, d[:, None] * a * d[None]


class GraphConv(nn.Module):
    def __init__(self, c_in, c_out):
        super().__init__()
        self.lin = nn.Linear(c_in, c_out)

    def forward(self, x, a):
        return a @ self.lin(x)


class GCN(nn.Module):
    def __init__(self, words, fields, width=16):
        super().__init__()
        self.conv1 = GraphConv(words, width)
        self.conv2 = GraphConv(width, width)
        self.classify = nn.Linear(width, fields)
        self.embedding = None

    def forward(self, x, a):
        h = torch.relu(self.conv1(x, a))
        h = nn.functional.dropout(h, 0.5, self.training)
        h = torch.relu(self.conv2(h, a))
        self.embedding = h.detach()
        return self.classify(h if healthy else self.embedding)


g = torch.Generator().manual_seed(seed)
x, y, a = citations(1200, g)
x = (x - x.mean(0)) / x.std(0)
role = torch.rand(len(y), generator=g)
train, val = role < 0.5, role > 0.6
model = GCN(x.shape[1], 6)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
for epoch in range(1, 51):
    model.train()
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x, a)[train], y[train])
    loss.backward()
    optimizer.step()
    if epoch % 10 == 0:
        model.eval()
        with torch.no_grad():
            out = model(x, a)[val]
        val_loss = nn.functional.cross_entropy(out, y[val]).item()
        accuracy = (out.argmax(1) == y[val]).float().mean().item()
        print(f"{epoch}: train {loss.item():.3f}, val loss {val_loss:.3f}, accuracy {accuracy:.3f}")
