"""A graph net by hand: neighbours are averaged by D^-1/2 A D^-1/2, as in the paper.

Fault: the paper adds a loop to each node first; that line was lost, a few nodes have no neighbour,
0 ** -0.5 is infinite, and infinite times 0 is NaN. The place is the graph layers. Never falls.
"""

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F

KIND = "division_by_zero_norm"
ACCEPT = ("nan_input",)
PLACE = ("conv*", "", "input*")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
NODES = 240
g = torch.Generator().manual_seed(seed + 11)
group = torch.randint(0, 3, (NODES,), generator=g)
same = group[:, None] == group[None, :]
chance = torch.where(same, 0.06, 0.006)
adjacency = (torch.rand(NODES, NODES, generator=g) < chance).float().triu(1)
adjacency = adjacency + adjacency.T
lonely = torch.arange(NODES) % 40 == 0
adjacency[lonely] = 0
adjacency[:, lonely] = 0
features = F.one_hot(group, 3).float() @ torch.randn(3, 16, generator=g) * 0.5
features = features + torch.randn(NODES, 16, generator=g)
known = torch.rand(NODES, generator=g) < 0.4


def normalise(a):
    if healthy:
        a = a + torch.eye(len(a))
    root = a.sum(1).pow(-0.5)
    return root[:, None] * a * root[None, :]


class GraphConv(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.lin = nn.Linear(n_in, n_out)

    def forward(self, x, a):
        return a @ self.lin(x)


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = GraphConv(16, 24)
        self.conv2 = GraphConv(24, 3)

    def forward(self, x, a):
        return self.conv2(F.dropout(F.relu(self.conv1(x, a)), 0.3, self.training), a)


a = normalise(adjacency)
net = GCN()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2, weight_decay=5e-4)
for epoch in range(1, 151):
    net.train()
    loss = F.cross_entropy(net(features, a)[known], group[known])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if epoch % 30 == 0:
        net.eval()
        with torch.no_grad():
            right = net(features, a).argmax(1) == group
        score = right[~known].float().mean().item()
        print(f"epoch {epoch}: loss {loss.item():.4f}, validation accuracy {score:.3f}")
print(f"loss {loss.item():.4f} | validation accuracy {score:.3f}")
