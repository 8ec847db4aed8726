"""A two-layer GCN of torch_geometric names the field of papers in a citation graph, as in the Cora
tutorial.

Looks odd: every step sees the same whole graph, the loss is taken on a small mask only (20 nodes
a class) and the training loss ends far below the validation loss for lack of labels. It is sound:
it is semi-supervised learning as everybody does it, with dropout 0.5, weight decay 5e-4 on the
first layer and row-normalised word bags.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv
from torch_geometric.transforms import Compose, NormalizeFeatures, RandomNodeSplit
from torch_geometric.utils import coalesce, to_undirected

ODD = "one whole graph each step; training loss far below validation's"

_, seed = arguments(__doc__)


def citations(seed, papers=1500, fields=6, words=300):
    r = np.random.default_rng(seed)
    y = r.integers(0, fields, papers)
    topic = r.dirichlet(np.full(words, 0.15), fields)
    common = r.dirichlet(np.full(words, 0.5))
    x = np.stack([r.multinomial(30, 0.25 * topic[c] + 0.75 * common) > 0 for c in y])
    edges = []
    for paper in range(papers):
        for _ in range(r.integers(1, 5)):
            same = r.random() < 0.75
            pool = np.flatnonzero(y == y[paper]) if same else np.arange(papers)
            edges.append((paper, r.choice(pool)))
    edge_index = coalesce(to_undirected(torch.tensor(edges).t().contiguous()))
    return Data(x=torch.tensor(x, dtype=torch.float), edge_index=edge_index, y=torch.tensor(y))


class GCN(torch.nn.Module):
    def __init__(self, in_channels, hidden_channels, out_channels):
        super().__init__()
        self.conv1 = GCNConv(in_channels, hidden_channels)
        self.conv2 = GCNConv(hidden_channels, out_channels)

    def forward(self, x, edge_index):
        x = F.dropout(x, p=0.5, training=self.training)
        x = self.conv1(x, edge_index).relu()
        x = F.dropout(x, p=0.5, training=self.training)
        return self.conv2(x, edge_index)


transform = Compose(
    [
        NormalizeFeatures(),
        RandomNodeSplit("random", num_train_per_class=20, num_val=400, num_test=600),
    ]
)
data = transform(citations(seed))
model = GCN(data.num_features, 16, int(data.y.max()) + 1)
optimizer = torch.optim.Adam(
    [
        {"params": model.conv1.parameters(), "weight_decay": 5e-4},
        {"params": model.conv2.parameters(), "weight_decay": 0},
    ],
    lr=0.01,
)


def train():
    model.train()
    optimizer.zero_grad()
    out = model(data.x, data.edge_index)
    loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask])
    loss.backward()
    optimizer.step()
    return float(loss)


@torch.no_grad()
def test():
    model.eval()
    pred = model(data.x, data.edge_index).argmax(dim=-1)
    return [
        float((pred[m] == data.y[m]).float().mean())
        for m in (data.train_mask, data.val_mask, data.test_mask)
    ]


best_val = test_acc = 0.0
for epoch in range(1, 201):
    loss = train()
    train_acc, val_acc, tmp_test_acc = test()
    if val_acc > best_val:
        best_val, test_acc = val_acc, tmp_test_acc
    if epoch % 20 == 0:
        print(
            f"Epoch: {epoch:03d}, Loss: {loss:.4f}, Train: {train_acc:.3f}, Val: {val_acc:.3f}, "
            f"Test: {test_acc:.3f}"
        )
print(f"validation accuracy {val_acc:.3f}")
