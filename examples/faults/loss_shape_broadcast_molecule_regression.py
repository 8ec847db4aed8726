"""A graph network of torch_geometric predicts a property of small molecules; output and target
differ in shape.

The model gives (graphs, 1) while `data.y` of the batch is (graphs,), and mse_loss broadcasts the
two to a square: every prediction is drawn to the mean of all targets. The user should squeeze the
output. The place is the loss (mse_loss).
"""

import warnings

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GraphConv, global_add_pool
from torch_geometric.utils import to_undirected

KIND = "loss_shape_broadcast"
ACCEPT = ()
PLACE = ("loss",)
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)
warnings.filterwarnings("ignore", category=UserWarning)


def molecules(n, seed):
    r = np.random.default_rng(seed)
    weight = np.array([0.9, -0.6, 0.4, 1.3, -1.1])
    graphs = []
    for _ in range(n):
        atoms = r.integers(6, 16)
        kinds = r.choice(5, atoms, p=[0.45, 0.2, 0.15, 0.12, 0.08])
        bonds = [(i, r.integers(max(0, i - 3), i)) for i in range(1, atoms)]
        rings = [tuple(r.choice(atoms, 2, replace=False)) for _ in range(r.integers(0, 3))]
        edge_index = to_undirected(torch.tensor(bonds + rings).t().contiguous())
        polar = sum(abs(weight[kinds[a]] - weight[kinds[b]]) for a, b in bonds + rings)
        value = 0.35 * polar + weight[kinds].sum() - 0.15 * atoms + r.normal(0, 0.25)
        graphs.append(
            Data(
                x=F.one_hot(torch.tensor(kinds), 5).float(),
                edge_index=edge_index,
                y=torch.tensor([(value - 4.0) / 2.3], dtype=torch.float),
            )
        )
    return graphs


class Net(torch.nn.Module):
    def __init__(self, hidden_channels=48):
        super().__init__()
        self.conv1 = GraphConv(5, hidden_channels)
        self.conv2 = GraphConv(hidden_channels, hidden_channels)
        self.conv3 = GraphConv(hidden_channels, hidden_channels)
        self.lin = torch.nn.Linear(hidden_channels, 1)

    def forward(self, x, edge_index, batch):
        x = self.conv1(x, edge_index).relu()
        x = self.conv2(x, edge_index).relu()
        x = self.conv3(x, edge_index).relu()
        return self.lin(global_add_pool(x, batch) / 10)


train_loader = DataLoader(molecules(700, 10 * seed), batch_size=32, shuffle=True)
val_loader = DataLoader(molecules(250, 10 * seed + 1), batch_size=64)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)


def train():
    model.train()
    total_loss = 0.0
    for data in train_loader:
        optimizer.zero_grad()
        out = model(data.x, data.edge_index, data.batch)
        loss = F.mse_loss(out.squeeze(-1) if healthy else out, data.y)
        loss.backward()
        optimizer.step()
        total_loss += float(loss.detach()) * data.num_graphs
    return total_loss / len(train_loader.dataset)


@torch.no_grad()
def test(loader):
    model.eval()
    pairs = [(model(d.x, d.edge_index, d.batch).view(-1), d.y) for d in loader]
    out, y = (torch.cat(part) for part in zip(*pairs, strict=True))
    return 1 - float((out - y).pow(2).mean() / y.var())


for epoch in range(1, 21):
    loss = train()
    r2 = test(val_loader)
    if epoch % 4 == 0:
        print(f"Epoch: {epoch:02d}, Loss: {loss:.4f}, Val R2: {r2:.4f}")
print(f"validation R2 {r2:.3f}")
