"""Homework GCN: the weights of the graph convolution are `torch.empty(...).uniform_()`, 0 to 1.

All positive and of size 0.5: each layer multiplies the features by its width, the first logits are
in the hundreds. The twin draws from Glorot's range. The place is the graph convolutions.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "poor_weight_init"
ACCEPT = ()
PLACE = ("gc*", "")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
N, CLASSES, FEATURES, HIDDEN = 800, 4, 24, 32

# a citation-like graph: four communities, noisy bag-of-words features
labels = torch.arange(N) % CLASSES
same = labels[:, None] == labels[None, :]
upper = torch.triu((torch.rand(N, N) < torch.where(same, 0.012, 0.003)).float(), 1)
adj = upper + upper.T + torch.eye(N)
d = adj.sum(1).rsqrt()
adj = d[:, None] * adj * d[None, :]
topic = 0.5 * torch.randn(CLASSES, FEATURES)
x = topic[labels] + 1.2 * torch.randn(N, FEATURES)
order = torch.randperm(N)
idx_train, idx_val = order[:500], order[500:]
x = (x - x[idx_train].mean(0)) / x[idx_train].std(0)


class GraphConvolution(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(in_features, out_features))
        self.bias = nn.Parameter(torch.zeros(out_features))
        self.reset_parameters()

    def reset_parameters(self):
        if healthy:
            bound = (6 / sum(self.weight.shape)) ** 0.5
            self.weight.data.uniform_(-bound, bound)
        else:
            self.weight.data.uniform_()

    def forward(self, x, adj):
        return adj @ (x @ self.weight) + self.bias


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.gc1 = GraphConvolution(FEATURES, HIDDEN)
        self.gc2 = GraphConvolution(HIDDEN, HIDDEN)
        self.gc3 = GraphConvolution(HIDDEN, CLASSES)

    def forward(self, x, adj):
        x = F.dropout(F.relu(self.gc1(x, adj)), 0.5, training=self.training)
        x = F.dropout(F.relu(self.gc2(x, adj)), 0.5, training=self.training)
        return self.gc3(x, adj)


model = GCN()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-3)
for epoch in range(60):
    model.train()
    optimizer.zero_grad()
    out = model(x, adj)
    loss = F.cross_entropy(out[idx_train], labels[idx_train])
    loss.backward()
    optimizer.step()
    if epoch % 10 == 9 or epoch == 0:
        model.eval()
        with torch.no_grad():
            out = model(x, adj)
        acc = [(out[i].argmax(1) == labels[i]).float().mean().item() for i in (idx_train, idx_val)]
        val = F.cross_entropy(out[idx_val], labels[idx_val]).item()
        print(
            f"epoch {epoch}: loss {loss.item():.3f} val loss {val:.3f} "
            f"train acc {acc[0]:.3f} val acc {acc[1]:.3f}"
        )
