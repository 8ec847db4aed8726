"""A penalty written by hand, 0.15 times the sum of all squared weights, is added to the loss of a
classifier of molecules' graphs.

The sum runs over some thousand weights and outweighs the data: the weights shrink until two of the
three kinds are mistaken for each other. The place is the loss (its penalty), and through it the
whole model.
"""

import torch
from data import arguments
from torch import nn

KIND = "over_regularized"
ACCEPT = ()
PLACE = ("loss*", "optimizer", "conv*", "read*", "loop", "")
SILENT = True
EXACT = False
EARLY = False

NODES = 14


def graphs(n):
    """Random graphs of three kinds: ring with chords, tree, two clusters."""
    kind = torch.randint(0, 3, (n,))
    adjacency = torch.zeros(n, NODES, NODES)
    for g, k in enumerate(kind.tolist()):
        a = adjacency[g]
        if k == 0:
            for i in range(NODES):
                a[i, (i + 1) % NODES] = 1
            for i in torch.randint(0, NODES, (2,)).tolist():
                a[i, (i + NODES // 2) % NODES] = 1
        elif k == 1:
            for i in range(1, NODES):
                a[i, int(torch.randint(0, i, ()))] = 1
        else:
            half = (torch.arange(NODES) < NODES // 2).float()
            same = half[:, None] == half[None, :]
            a[:] = ((torch.rand(NODES, NODES) < 0.22) & same).float().triu(1)
            a[0, NODES - 1] = 1
        a[:] = ((a + a.T) > 0).float()
    return adjacency, kind


def node_features(adjacency):
    degree = adjacency.sum(2, keepdim=True)
    around = (adjacency @ degree) / degree.clamp(min=1)
    raw = torch.cat([degree, around, (degree == 1).float(), (degree == 0).float()], 2)
    return (raw - raw.mean((0, 1))) / raw.std((0, 1))


class GraphNet(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.conv1 = nn.Linear(4, width)
        self.conv2 = nn.Linear(width, width)
        self.readout = nn.Linear(2 * width, 3)

    def forward(self, nodes, adjacency):
        spread = adjacency + torch.eye(NODES)
        spread = spread / spread.sum(2, keepdim=True)
        z = torch.relu(self.conv1(spread @ nodes))
        z = torch.relu(self.conv2(spread @ z))
        return self.readout(torch.cat([z.mean(1), z.amax(1)], 1))


healthy, _ = arguments(__doc__)
adjacency, kind = graphs(1000)
nodes = node_features(adjacency)
strength = 1e-5 if healthy else 0.15
model = GraphNet()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
for epoch in range(12):
    for rows in torch.randperm(800).split(32):
        fit = nn.functional.cross_entropy(model(nodes[rows], adjacency[rows]), kind[rows])
        penalty = sum(p.square().sum() for p in model.parameters())
        loss = fit + strength * penalty
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        scores = model(nodes[800:], adjacency[800:])
        accuracy = (scores.argmax(1) == kind[800:]).float().mean()
    if epoch % 3 == 2:
        print(f"epoch {epoch}: fit {fit:.3f}, penalty {penalty:.2f}, test accuracy {accuracy:.3f}")
