"""A graph convolution network written after the well-known tutorial: F.nll_loss in the loop, but
the `return F.log_softmax(x, dim=1)` at the end of forward was left out.

The loss is minus the mean score of the right class: it goes below 0 and on without end, the scores
of all classes grow, none is a log-probability, and the frequent class is favoured. The place is
the loss.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "missing_softmax"
ACCEPT = ()
PLACE = ("loss*", "conv2*")
SILENT = True
EXACT = True
EARLY = True


def citation_graph(n=900, classes=4, words=24):
    """Papers of four fields (of 50, 25, 15 and 10 %) that mostly cite their own field."""
    y = torch.multinomial(torch.tensor([0.5, 0.25, 0.15, 0.1]), n, replacement=True)
    same = y.unsqueeze(0) == y.unsqueeze(1)
    edge = torch.rand(n, n) < torch.where(same, 0.015, 0.003)
    adj = torch.triu(edge, 1)
    adj = (adj | adj.T).float() + torch.eye(n)
    d = adj.sum(1).rsqrt()
    topics = torch.randn(classes, words)
    x = 0.5 * topics[y] + torch.randn(n, words)
    return (x - x.mean(0)) / x.std(0), d[:, None] * adj * d[None, :], y


class GraphConv(nn.Module):
    def __init__(self, in_feats, out_feats):
        super().__init__()
        self.lin = nn.Linear(in_feats, out_feats)

    def forward(self, x, adj):
        return adj @ self.lin(x)


class GCN(nn.Module):
    def __init__(self, n_feat, n_hidden, n_class, normalise):
        super().__init__()
        self.conv1 = GraphConv(n_feat, n_hidden)
        self.conv2 = GraphConv(n_hidden, n_class)
        self.normalise = normalise

    def forward(self, x, adj):
        x = F.relu(self.conv1(x, adj))
        x = F.dropout(x, 0.5, training=self.training)
        x = self.conv2(x, adj)
        return F.log_softmax(x, dim=1) if self.normalise else x


healthy, seed = arguments(__doc__)
features, adj, labels = citation_graph()
order = torch.randperm(len(labels))
idx_train, idx_val, idx_test = order[:500], order[500:700], order[700:]

model = GCN(features.shape[1], 16, 4, normalise=healthy)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-3)


def train(epoch):
    model.train()
    optimizer.zero_grad()
    output = model(features, adj)
    loss_train = F.nll_loss(output[idx_train], labels[idx_train])
    loss_train.backward()
    optimizer.step()

    model.eval()
    with torch.no_grad():
        output = model(features, adj)
        loss_val = F.nll_loss(output[idx_val], labels[idx_val])
    return loss_train.item(), loss_val.item()


for epoch in range(200):
    losses = train(epoch)
with torch.no_grad():
    guess = model(features, adj)[idx_test].argmax(1)
recall = [(guess[labels[idx_test] == k] == k).float().mean().item() for k in range(4)]
print(
    f"loss {losses[0]:.3f}, val loss {losses[1]:.3f}, "
    f"test accuracy {(guess == labels[idx_test]).float().mean():.3f}, recalls "
    + " ".join(f"{r:.2f}" for r in recall)
)
