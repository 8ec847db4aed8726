"""Tells how molecule-like graphs are built, by a graph network that is given no node features."""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = (
    "every input feature is the constant 1, in all nodes of all graphs: the information is in the "
    "edges, which sum aggregation counts"
)
KINDS = 3
_, seed = arguments(__doc__)
torch.set_num_threads(1)
rng = np.random.default_rng(seed)


def ring_graph(nodes, chords):
    edges = {(k, (k + 1) % nodes) for k in range(nodes)}
    while len(edges) < nodes + chords:
        a, b = sorted(rng.choice(nodes, 2, replace=False).tolist())
        edges.add((a, b))
    return edges


def caterpillar(nodes, chords):
    spine = nodes // 2
    edges = {(k, k + 1) for k in range(spine - 1)}
    edges |= {(int(rng.integers(spine)), k) for k in range(spine, nodes)}
    while len(edges) < nodes - 1 + chords:
        a, b = sorted(rng.choice(np.arange(spine, nodes), 2, replace=False).tolist())
        edges.add((a, b))
    return edges


def preferential(nodes, extra):
    ends, edges = [0, 1], {(0, 1)}
    for k in range(2, nodes):
        edges.add((int(rng.choice(ends)), k))
        ends += [k, k, min(e for e in edges if e[1] == k)[0]]
    while len(edges) < nodes - 1 + extra:
        a, b = sorted(rng.choice(ends, 2).tolist())
        if a != b:
            edges.add((a, b))
    return edges


def graphs(n: int):
    kinds, made = rng.integers(KINDS, size=n), []
    for kind in kinds:
        nodes = int(rng.integers(14, 25))
        build = (ring_graph, caterpillar, preferential)[kind]
        edges = torch.tensor(sorted(build(nodes, int(rng.integers(3, 7)))))
        made.append((nodes, torch.cat([edges, edges.flip(1)]).T))
    return made, torch.tensor(kinds)


def collate(graphs):
    sizes = torch.tensor([nodes for nodes, _ in graphs])
    offset = sizes.cumsum(0) - sizes
    edges = torch.cat([edges + offset[k] for k, (_, edges) in enumerate(graphs)], 1)
    graph = torch.arange(len(graphs)).repeat_interleave(sizes)
    return torch.ones(len(graph), 1), edges, graph


class Layer(nn.Module):
    def __init__(self, inward, width):
        super().__init__()
        self.eps = nn.Parameter(torch.zeros(()))
        self.mlp = nn.Sequential(
            nn.Linear(inward, width),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
        )

    def forward(self, x, edges):
        around = torch.zeros_like(x).index_add(0, edges[1], x[edges[0]])
        return self.mlp((1 + self.eps) * x + around)


class GIN(nn.Module):
    def __init__(self, width: int = 24):
        super().__init__()
        self.layers = nn.ModuleList(Layer(1 if k == 0 else width, width) for k in range(3))
        self.head = nn.Linear(3 * width, KINDS)

    def forward(self, x, edges, graph):
        pooled = []
        for layer in self.layers:
            x = layer(x, edges)
            total = x.new_zeros(int(graph.max()) + 1, x.shape[1]).index_add(0, graph, x)
            pooled.append(total / 20)
        return self.head(F.dropout(torch.cat(pooled, 1), 0.3, self.training))


train, label = graphs(900)
val, label_val = graphs(300)
model = GIN()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 5, 0.5)
whole = collate(val)
for epoch in range(15):
    model.train()
    losses = []
    for rows in torch.randperm(len(train)).split(50):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(*collate([train[r] for r in rows])), label[rows])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    schedule.step()
    model.eval()
    with torch.no_grad():
        accuracy = (model(*whole).argmax(1) == label_val).float().mean()
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1}: loss {np.mean(losses):.3f}, validation accuracy {accuracy:.3f}")

counts = torch.tensor([[nodes, edges.shape[1] / 2] for nodes, edges in train + val])
counts = torch.cat([counts, counts[:, 1:] / counts[:, :1], torch.ones(len(counts), 1)], 1)
fit = torch.linalg.lstsq(counts[:900], F.one_hot(label).float()).solution
plain = ((counts[900:] @ fit).argmax(1) == label_val).float().mean()
print(f"accuracy {accuracy:.3f}; by numbers of nodes and edges {plain:.3f}")
