"""Fields of papers in a citation graph by a two-layer GCN; the whole graph is the batch.

Kipf and Welling's setting: 140 papers have a label for training, the others are validation and
test through their masks, and every step is a full-batch step on the same graph. Rate 0.01, dropout
0.5, decay 5e-4 on the first layer only.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = "each step sees the very same inputs, validation rows included; only the labels are masked"

_, seed = arguments(__doc__)
PAPERS, FIELDS, WORDS = 900, 5, 120


def citations(g):
    """Papers cite within their field four times in five; words by field, most of them shared."""
    field = torch.randint(0, FIELDS, (PAPERS,), generator=g)
    like = torch.rand(FIELDS, WORDS, generator=g) ** 6 * 0.25 + 0.03
    words = (torch.rand(PAPERS, WORDS, generator=g) < like[field]).float()
    source = torch.arange(PAPERS).repeat_interleave(3)
    same = torch.rand(len(source), generator=g) < 0.8
    order = torch.rand(len(source), PAPERS, generator=g)
    allowed = (field[source][:, None] == field[None, :]) == same[:, None]
    target = order.masked_fill(~allowed, -1).argmax(1)
    adjacency = torch.zeros(PAPERS, PAPERS)
    adjacency[source, target] = adjacency[target, source] = 1
    return words, field, adjacency


def normalised(adjacency):
    with_self = adjacency + torch.eye(len(adjacency))
    root = with_self.sum(1).rsqrt()
    return (root[:, None] * with_self * root[None, :]).to_sparse_csr()


class GCN(nn.Module):
    def __init__(self, hidden=16):
        super().__init__()
        self.first = nn.Linear(WORDS, hidden)
        self.second = nn.Linear(hidden, FIELDS)

    def forward(self, x, a):
        x = F.dropout(x, 0.5, self.training)
        x = F.relu(a @ self.first(x))
        x = F.dropout(x, 0.5, self.training)
        return a @ self.second(x)


g = torch.Generator().manual_seed(seed)
words, field, adjacency = citations(g)
x = words / words.sum(1, keepdim=True).clamp(min=1)
a = normalised(adjacency)
order = torch.randperm(PAPERS, generator=g)
train, val, test = order[:140], order[140:400], order[400:]

model = GCN()
optimizer = torch.optim.Adam(
    [
        {"params": model.first.parameters(), "weight_decay": 5e-4},
        {"params": model.second.parameters(), "weight_decay": 0.0},
    ],
    lr=0.01,
)


@torch.no_grad()
def accuracy(rows):
    model.eval()
    logits = model(x, a)[rows]
    return (logits.argmax(1) == field[rows]).float().mean().item(), F.cross_entropy(
        logits, field[rows]
    ).item()


for epoch in range(1, 201):
    model.train()
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x, a)[train], field[train])
    loss.backward()
    optimizer.step()
    if epoch % 20 == 0:
        right, val_loss = accuracy(val)
        print(f"epoch {epoch} loss {loss.item():.3f} val {val_loss:.3f} accuracy {right:.3f}")
print(f"test accuracy {accuracy(test)[0]:.3f}")
