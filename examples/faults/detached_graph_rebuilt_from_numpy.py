"""A graph net by hand finds communities; the messages of its first layer pass through numpy.

The neighbours' mean was easier to write in numpy, and `torch.from_numpy` starts a new graph: the
first layer never gets a gradient. The place is the first layer. The twin takes the mean in torch.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "detached_graph"
ACCEPT = ()
PLACE = ("layer1", "layer1.weight", "layer1.bias")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

# 400 people in 4 groups; friends mostly within the group; features with little signal
r = np.random.default_rng(seed)
N, GROUPS, FEATURES = 400, 4, 60
group = r.integers(0, GROUPS, N)
same = group[:, None] == group[None, :]
edges = np.triu(r.random((N, N)) < np.where(same, 0.06, 0.006), 1)
adjacency = (edges | edges.T | np.eye(N, dtype=bool)).astype(np.float32)
mean_matrix = adjacency / adjacency.sum(1, keepdims=True)
features = r.normal(size=(N, FEATURES)).astype(np.float32)
features[:, :GROUPS] += 1.0 * np.eye(GROUPS, dtype=np.float32)[group]

A = torch.from_numpy(mean_matrix)
X = torch.from_numpy(features)
Y = torch.from_numpy(group)
order = torch.randperm(N)
train, val = order[:200], order[200:]


class GraphNet(nn.Module):
    def __init__(self, hidden=8):
        super().__init__()
        self.layer1 = nn.Linear(FEATURES, hidden)
        self.layer2 = nn.Linear(hidden, GROUPS)

    def forward(self, x):
        h = self.layer1(x)
        h = A @ h if healthy else torch.from_numpy(mean_matrix @ h.detach().numpy())
        h = F.dropout(torch.relu(h), 0.3, self.training)
        return A @ self.layer2(h)


model = GraphNet()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-3)
for epoch in range(1, 151):
    model.train()
    optimizer.zero_grad()
    loss = F.cross_entropy(model(X)[train], Y[train])
    loss.backward()
    optimizer.step()
    if epoch % 30 == 0:
        model.eval()
        with torch.no_grad():
            out = model(X)
            val_loss = F.cross_entropy(out[val], Y[val]).item()
            acc = [(out[rows].argmax(1) == Y[rows]).float().mean().item() for rows in (train, val)]
        print(
            f"Epoch {epoch:3d} loss {loss.item():.4f} val {val_loss:.4f} "
            f"train acc {acc[0]:.3f} val acc {acc[1]:.3f}"
        )
