"""A graph convolution net classifies the nodes of a citation-like graph. Weight decay is for the
weights and not for the biases, so the parameters are sorted into two groups by their names.

The layers are written by hand and call their matrix `theta`: it is in neither group. Only the
biases and the last linear layer learn, on top of random convolutions. The place is the
convolutions' theta.
"""

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F

KIND = "parameters_not_in_optimizer"
ACCEPT = ()
PLACE = ("*theta", "conv*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class GraphConv(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.theta = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs))
        nn.init.xavier_uniform_(self.theta)

    def forward(self, x, adjacency):
        return adjacency @ (x @ self.theta) + self.bias


class GCN(nn.Module):
    def __init__(self, inputs, hidden, classes):
        super().__init__()
        self.conv1, self.conv2 = GraphConv(inputs, hidden), GraphConv(hidden, hidden)
        self.classify = nn.Linear(hidden, classes)

    def forward(self, x, adjacency):
        h = F.dropout(F.relu(self.conv1(x, adjacency)), 0.2, self.training)
        return self.classify(F.relu(self.conv2(h, adjacency)))


def citations(g, n=600, classes=5, words=200):
    y = torch.randint(0, classes, (n,), generator=g)
    same = y[:, None] == y[None]
    a = (torch.rand(n, n, generator=g) < torch.where(same, 0.03, 0.003)).triu(1).float()
    a = a + a.T + torch.eye(n)
    d = a.sum(1).rsqrt()
    topics = 0.03 + 0.09 * (torch.rand(classes, words, generator=g) < 0.15)
    x = (torch.rand(n, words, generator=g) < topics[y]).float()
    return x, y, d[:, None] * a * d[None]


def groups(model, decay):
    named = list(model.named_parameters())
    plain = [p for name, p in named if name.endswith("bias")]
    if healthy:
        weights = [p for name, p in named if not name.endswith("bias")]
    else:
        weights = [p for name, p in named if name.endswith("weight")]
    return [{"params": weights, "weight_decay": decay}, {"params": plain, "weight_decay": 0.0}]


x, y, adjacency = citations(torch.Generator().manual_seed(11 + seed))
order = torch.randperm(len(x))
train, held = order[:200], order[200:]
model = GCN(x.shape[1], 16, 5)
optimizer = torch.optim.Adam(groups(model, 5e-3), lr=1e-2)
for epoch in range(120):
    model.train()
    loss = F.cross_entropy(model(x, adjacency)[train], y[train])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if epoch % 10 == 9:
        model.eval()
        with torch.no_grad():
            out = model(x, adjacency)[held]
        accuracy = (out.argmax(1) == y[held]).float().mean()
        print(
            f"epoch {epoch}: train {loss.item():.3f}"
            f" val {F.cross_entropy(out, y[held]):.3f} accuracy {accuracy:.3f}"
        )
