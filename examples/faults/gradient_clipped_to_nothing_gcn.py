"""A graph network finds the topic of papers that cite each other; the gradient is clipped to a
norm of 0.0005.

The writer took max_norm for a small number like the weight decay; each step is a thousandth of
what it should be and the loss creeps. The place is the loop.
"""

import torch
from data import arguments
from torch import nn

KIND = "gradient_clipped_to_nothing"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("loop", "optimizer")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

N, TOPICS, FEATURES = 600, 4, 40
MAX_NORM = 1.0 if healthy else 0.0005

topic = torch.randint(0, TOPICS, (N,))
same = topic.unsqueeze(0) == topic.unsqueeze(1)
edge = torch.rand(N, N) < torch.where(same, 0.02, 0.004)
adjacency = (edge | edge.T).float()
adjacency.fill_diagonal_(1.0)
degree = adjacency.sum(1)
norm_adj = adjacency / (degree.sqrt().unsqueeze(0) * degree.sqrt().unsqueeze(1))
word_rate = torch.rand(TOPICS, FEATURES) * 0.25 + 0.1
features = (torch.rand(N, FEATURES) < word_rate[topic]).float()

order = torch.randperm(N)
train_idx, val_idx = order[:300], order[300:]
features = (features - features[train_idx].mean(0)) / features[train_idx].std(0)


class GraphConv(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)

    def forward(self, x, adj):
        return adj @ self.linear(x)


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = GraphConv(FEATURES, 16)
        self.conv2 = GraphConv(16, TOPICS)
        self.dropout = nn.Dropout(0.3)

    def forward(self, x, adj):
        h = torch.relu(self.conv1(x, adj))
        return self.conv2(self.dropout(h), adj)


model = GCN()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-3)


def validate():
    model.eval()
    with torch.no_grad():
        out = model(features, norm_adj)[val_idx]
    loss = criterion(out, topic[val_idx]).item()
    return loss, (out.argmax(1) == topic[val_idx]).float().mean().item()


for epoch in range(1, 201):
    model.train()
    optimizer.zero_grad()
    out = model(features, norm_adj)
    loss = criterion(out[train_idx], topic[train_idx])
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
    optimizer.step()
    if epoch % 20 == 0:
        val_loss, val_acc = validate()
        print(f"epoch {epoch}: train {loss.item():.4f} val {val_loss:.4f} acc {val_acc:.4f}")
