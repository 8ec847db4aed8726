"""A message-passing net sums over neighbours with numpy's add.at, as torch_scatter would not
install; the result comes back by torch.from_numpy, without its history.

The encoder of the nodes and the first round of messages get no gradient and stay random; only what
lies after the last sum is trained, and the fit is much worse. The place is the model.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "detached_graph"
ACCEPT = ()
PLACE = ("encode*", "message*", "*message*")
SILENT = True
EXACT = True
EARLY = True


def scatter_add_numpy(values, index, n):
    out = np.zeros((n, values.shape[1]), dtype=np.float32)
    np.add.at(out, index.numpy(), values.detach().numpy())
    return torch.from_numpy(out)


def scatter_add_torch(values, index, n):
    return torch.zeros(n, values.shape[1]).index_add(0, index, values)


class MessagePassing(nn.Module):
    def __init__(self, scatter, n_kinds=8, dim=6):
        super().__init__()
        self.encode = nn.Embedding(n_kinds, dim)
        self.message1 = nn.Linear(2 * dim, 16)
        self.message2 = nn.Linear(16, 16)
        self.readout = nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 1))
        self.scatter = scatter

    def forward(self, kinds, edges, graph, n_graphs):
        src, dst = edges
        h = self.encode(kinds)
        m = nn.functional.silu(self.message1(torch.cat([h[src], h[dst]], dim=1)))
        h = self.message2(self.scatter(m, dst, len(kinds)))
        return self.readout(self.scatter(nn.functional.silu(h), graph, n_graphs) / 8).squeeze(1)


def make_graphs(n, affinity, nodes=8):
    """Rings with two chords; the target is the sum of the affinities of bonded kinds."""
    out = []
    ring = torch.arange(nodes)
    for _ in range(n):
        kinds = torch.randint(0, 8, (nodes,))
        chords = torch.randint(0, nodes, (2, 2))
        src = torch.cat([ring, chords[0]])
        dst = torch.cat([(ring + 1) % nodes, chords[1]])
        bonds = affinity[kinds[src], kinds[dst]]
        edges = torch.stack([torch.cat([src, dst]), torch.cat([dst, src])])
        out.append((kinds, edges, bonds.sum()))
    return out


def collate(graphs):
    kinds = torch.cat([g[0] for g in graphs])
    edges = torch.cat([g[1] + 8 * i for i, g in enumerate(graphs)], dim=1)
    graph = torch.arange(len(graphs)).repeat_interleave(8)
    return (kinds, edges, graph, len(graphs)), torch.stack([g[2] for g in graphs])


healthy, seed = arguments(__doc__)
charge = torch.randn(8, 2)
affinity = charge @ charge.T
graphs = make_graphs(2400, affinity)
test_inputs, test_y = collate(graphs[2000:])
mean = torch.stack([g[2] for g in graphs[:2000]]).mean()
std = torch.stack([g[2] for g in graphs[:2000]]).std()

net = MessagePassing(scatter_add_torch if healthy else scatter_add_numpy)
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
epochs, size = 16, 50
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * 2000 // size)
for epoch in range(epochs):
    net.train()
    epoch_loss = 0.0
    for rows in torch.randperm(2000).split(size):
        inputs, y = collate([graphs[i] for i in rows.tolist()])
        loss = nn.functional.mse_loss(net(*inputs), (y - mean) / std)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        epoch_loss += loss.item() * size / 2000
    net.eval()
    with torch.no_grad():
        test_loss = nn.functional.mse_loss(net(*test_inputs), (test_y - mean) / std)
print(f"loss {epoch_loss:.3f}, test loss {test_loss:.3f}")
