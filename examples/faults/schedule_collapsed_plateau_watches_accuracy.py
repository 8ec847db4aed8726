"""A graph network whose ReduceLROnPlateau (mode "min", the default) is given the accuracy.

A rising accuracy counts as "no improvement", so the rate is divided by ten every few epochs while
all goes well; after a quarter of the training it is below 1e-6 and the net stops learning half
way. The place is the optimizer.
"""

import torch
from data import arguments
from torch import nn

KIND = "schedule_collapsed"
ACCEPT = ()
PLACE = ("optimizer", "loop")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
CLASSES, NODES, FEATURES = 4, 600, 24


def community_graph():
    """Nodes of four communities; most edges stay inside; weak features."""
    group = torch.randint(0, CLASSES, (NODES,))
    same = group[:, None] == group[None, :]
    edges = torch.rand(NODES, NODES) < torch.where(same, 0.03, 0.006)
    edges = torch.triu(edges, 1)
    adjacency = (edges | edges.T).float() + torch.eye(NODES)
    degree = adjacency.sum(1)
    normalised = adjacency / (degree[:, None] * degree[None, :]).sqrt()
    centres = torch.randn(CLASSES, FEATURES)
    features = 0.5 * centres[group] + torch.randn(NODES, FEATURES)
    return normalised, (features - features.mean(0)) / features.std(0), group


class GraphConv(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.lin = nn.Linear(a, b)

    def forward(self, adjacency, h):
        return adjacency @ self.lin(h)


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = GraphConv(FEATURES, 32)
        self.conv2 = GraphConv(32, CLASSES)
        self.dropout = nn.Dropout(0.3)

    def forward(self, adjacency, h):
        h = torch.relu(self.conv1(adjacency, h))
        return self.conv2(adjacency, self.dropout(h))


adjacency, features, group = community_graph()
order = torch.randperm(NODES)
train_idx, val_idx = order[:400], order[400:]
gcn = GCN()
optimizer = torch.optim.Adam(gcn.parameters(), lr=0.004, weight_decay=5e-4)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.1, patience=8)
for epoch in range(140):
    gcn.train()
    optimizer.zero_grad()
    logits = gcn(adjacency, features)
    loss = nn.functional.cross_entropy(logits[train_idx], group[train_idx])
    loss.backward()
    optimizer.step()

    gcn.eval()
    with torch.no_grad():
        logits = gcn(adjacency, features)
        val_loss = nn.functional.cross_entropy(logits[val_idx], group[val_idx]).item()
        val_acc = (logits[val_idx].argmax(1) == group[val_idx]).float().mean().item()
    scheduler.step(val_loss if healthy else val_acc)
rate = optimizer.param_groups[0]["lr"]
print(f"loss {loss.item():.3f}, validation accuracy {val_acc:.3f}, rate {rate:.1e}")
