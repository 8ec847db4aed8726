"""Graph attention on communities; 60 of 800 nodes have a label, weight decay on the first layer
only."""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = (
    "one batch again and again, most outputs never enter the loss, dropout 0.5 twice, decay "
    "in part of the net"
)

_, seed = arguments(__doc__)
N, K, D = 800, 5, 32
group = torch.randint(K, (N,))
same = group[:, None] == group[None, :]
edges = (torch.rand(N, N) < torch.where(same, 0.05, 0.004)).triu(1)
adjacency = edges | edges.T | torch.eye(N, dtype=torch.bool)
features = 0.4 * torch.randn(K, D)[group] + torch.randn(N, D)
features = (features - features.mean(0)) / features.std(0)
order = torch.randperm(N)
train, val, test = order[:60], order[60:260], order[260:]


class Attention(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.w = nn.Linear(a, b, bias=False)
        self.left = nn.Linear(b, 1)
        self.right = nn.Linear(b, 1)

    def forward(self, h):
        h = self.w(h)
        scores = F.leaky_relu(self.left(h) + self.right(h).T, 0.2)
        return scores.masked_fill(~adjacency, -1e9).softmax(1) @ h


layer1, layer2 = Attention(D, 32), Attention(32, K)
optimizer = torch.optim.Adam(
    [
        {"params": layer1.parameters(), "weight_decay": 5e-3},
        {"params": layer2.parameters(), "weight_decay": 0.0},
    ],
    lr=5e-3,
)


def network(training):
    h = F.dropout(features, 0.5, training)
    h = F.dropout(F.elu(layer1(h)), 0.5, training)
    return layer2(h)


for epoch in range(110):
    loss = F.cross_entropy(network(True)[train], group[train])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        out = network(False)
        val_loss = F.cross_entropy(out[val], group[val]).item()
accuracy = (out[test].argmax(1) == group[test]).float().mean()
print(f"loss {loss.item():.3f}, validation loss {val_loss:.3f}, test accuracy {accuracy:.3f}")
