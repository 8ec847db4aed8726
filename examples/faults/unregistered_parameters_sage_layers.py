"""A deep GraphSAGE network of torch_geometric sorts the users of a social network; its
convolutions lie in a plain list.

The layers are kept in a Python list instead of a ModuleList, so `model.parameters()` and the
optimizer never see them: only the output layer learns, on random features. The place is the list
`convs` of the model and the optimizer.
"""

from itertools import pairwise

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv
from torch_geometric.transforms import RandomNodeSplit
from torch_geometric.utils import coalesce, to_undirected

KIND = "unregistered_parameters"
ACCEPT = ("parameters_not_in_optimizer",)
PLACE = ("convs*", "*convs*", "optimizer", "loop")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


def network(seed, n=2500):
    r = np.random.default_rng(seed)
    x = r.normal(size=(n, 12))
    edges = []
    position = x[:, :2] + 0.3 * r.normal(size=(n, 2))
    for i in range(n):
        near = np.argsort(((position - position[i]) ** 2).sum(1))[1:12]
        edges += [(i, j) for j in r.choice(near, 3, replace=False)]
    edge_index = coalesce(to_undirected(torch.tensor(edges).t().contiguous()))
    friends = np.zeros((n, n), bool)
    friends[edge_index[0], edge_index[1]] = True
    around = (friends @ np.abs(x[:, 2:4])) / friends.sum(1, keepdims=True)
    score = (
        3 * around[:, 0]
        - 2 * around[:, 1]
        + np.abs(x[:, 5])
        - np.abs(x[:, 6])
        + 0.3 * r.normal(size=n)
    )
    y = np.digitize(score, np.quantile(score, [0.33, 0.67]))
    return Data(x=torch.tensor(x, dtype=torch.float), edge_index=edge_index, y=torch.tensor(y))


class GraphSAGE(torch.nn.Module):
    def __init__(self, in_channels, hidden_channels, out_channels, num_layers=2, dropout=0.3):
        super().__init__()
        sizes = [in_channels] + [hidden_channels] * num_layers
        convs = [SAGEConv(a, b) for a, b in pairwise(sizes)]
        self.convs = torch.nn.ModuleList(convs) if healthy else convs
        self.lin = torch.nn.Linear(hidden_channels, out_channels)
        self.dropout = dropout

    def forward(self, x, edge_index):
        for conv in self.convs:
            x = conv(x, edge_index).relu()
            x = F.dropout(x, p=self.dropout, training=self.training)
        return self.lin(x)


data = RandomNodeSplit("train_rest", num_val=400, num_test=100)(network(seed))
model = GraphSAGE(data.num_features, 48, 3)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.008, weight_decay=0.02)

for epoch in range(1, 121):
    model.train()
    optimizer.zero_grad()
    out = model(data.x, data.edge_index)
    loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask])
    loss.backward()
    optimizer.step()
    if epoch % 20 == 0:
        model.eval()
        with torch.no_grad():
            out = model(data.x, data.edge_index)
        val_loss = F.cross_entropy(out[data.val_mask], data.y[data.val_mask])
        accuracy = (out.argmax(-1) == data.y)[data.val_mask].float().mean()
        print(f"Epoch: {epoch:03d}, Loss: {loss.item():.4f}, Val: {val_loss:.4f}, {accuracy:.4f}")
print(f"validation accuracy {accuracy:.3f}")
