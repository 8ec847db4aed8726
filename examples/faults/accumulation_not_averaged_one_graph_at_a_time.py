"""Graphs of different sizes go through a message-passing net one by one, sixteen for each update.

Their losses are not divided by sixteen: the gradient is a sum, sixteen times the mean that the rate
was meant for. The twin divides. The place is the loop.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "accumulation_not_averaged"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("loop", "loss", "optimizer")
SILENT = False
EXACT = False
EARLY = True

GRAPHS_PER_UPDATE = 16


def graph():
    """A random graph with node features, and 1 if the marked nodes are mostly tied together."""
    n = int(torch.randint(8, 16, ()))
    label = int(torch.randint(0, 2, ()))
    marked = (torch.rand(n) < 0.5).float()
    same = marked[:, None] == marked[None, :]
    chance = torch.where(same, 0.55, 0.15) if label else torch.where(same, 0.15, 0.55)
    upper = torch.triu((torch.rand(n, n) < chance).float(), 1)
    x = torch.stack([2 * marked - 1, torch.randn(n), torch.randn(n)], 1)
    return x, upper + upper.T, torch.tensor([label])


class MessagePassing(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.own, self.others = nn.Linear(n_in, n_out), nn.Linear(n_in, n_out, bias=False)

    def forward(self, x, adjacency):
        degree = adjacency.sum(1, keepdim=True).clamp(min=1)
        return F.relu(self.own(x) + self.others(adjacency @ x / degree))


class GraphClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1, self.layer2 = MessagePassing(3, 24), MessagePassing(24, 24)
        self.readout = nn.Linear(24, 2)

    def forward(self, x, adjacency):
        h = self.layer2(self.layer1(x, adjacency), adjacency)
        return self.readout(h.mean(0, keepdim=True))


healthy, seed = arguments(__doc__)
train_graphs, val_graphs = [graph() for _ in range(640)], [graph() for _ in range(160)]
model = GraphClassifier()
optimizer = torch.optim.SGD(model.parameters(), lr=0.08, momentum=0.9)

for epoch in range(6):
    model.train()
    total = 0.0
    optimizer.zero_grad()
    for i, row in enumerate(torch.randperm(len(train_graphs)).tolist(), 1):
        x, adjacency, label = train_graphs[row]
        loss = F.cross_entropy(model(x, adjacency), label)
        total += loss.item()
        if healthy:
            loss = loss / GRAPHS_PER_UPDATE
        loss.backward()
        if i % GRAPHS_PER_UPDATE == 0:
            optimizer.step()
            optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        outs = [(model(x, a), label) for x, a, label in val_graphs]
    val = sum(F.cross_entropy(out, label).item() for out, label in outs) / len(outs)
    acc = sum((out.argmax(1) == label).item() for out, label in outs) / len(outs)
    print(
        f"epoch {epoch}: train {total / len(train_graphs):.3f}, val {val:.3f}, accuracy {acc:.3f}"
    )
