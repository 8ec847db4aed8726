"""A graph network sorts papers of a citation graph, with a weight decay of 0.5 in SGD.

Someone read "0.0005" wrongly. The decay is much stronger than the gradient of the loss: the
weights shrink to nothing and all papers get nearly the same scores. The place is the optimizer.
"""

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F

KIND = "over_regularized"
ACCEPT = ("bad_optimizer_settings",)
PLACE = ("optimizer",)
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

N, FIELDS, WORDS = 1200, 5, 40


def citations():
    """Papers of five fields; most links stay inside a field; words hint at it, weakly."""
    y = torch.randint(0, FIELDS, (N,))
    same = (y[:, None] == y[None]).float()
    link = (torch.rand(N, N) < 0.012 * same + 0.0025 * (1 - same)).float().triu(1)
    link = link + link.T + torch.eye(N)
    degree = link.sum(1).rsqrt()
    topic = torch.randn(FIELDS, WORDS)
    words = (torch.rand(N, WORDS) < torch.sigmoid(0.6 * topic[y] - 1.5)).float()
    return degree[:, None] * link * degree[None], (words - words.mean(0)) / words.std(0), y


class GraphLayer(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, graph, x):
        return graph @ self.linear(x)


class GCN(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.first = GraphLayer(WORDS, hidden)
        self.second = GraphLayer(hidden, FIELDS)

    def forward(self, graph, x):
        h = F.dropout(torch.relu(self.first(graph, x)), 0.2, self.training)
        return self.second(graph, h)


graph, x, y = citations()
order = torch.randperm(N)
known, held = order[:700], order[700:]
model = GCN()
optimizer = torch.optim.SGD(
    model.parameters(), lr=0.03, momentum=0.9, weight_decay=5e-4 if healthy else 0.5
)


def step():
    model.train()
    optimizer.zero_grad()
    loss = F.cross_entropy(model(graph, x)[known], y[known])
    loss.backward()
    optimizer.step()
    return loss.item()


@torch.no_grad()
def validate():
    model.eval()
    scores = model(graph, x)[held]
    return F.cross_entropy(scores, y[held]).item(), (scores.argmax(1) == y[held]).float().mean()


for epoch in range(200):
    loss = step()
    if epoch % 20 == 19:
        val, right = validate()
        print(f"epoch {epoch} train {loss:.4f} val {val:.4f} accuracy {right:.3f}")
