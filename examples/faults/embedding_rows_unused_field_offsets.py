"""A factorisation machine for clicks: all fields share one table, but the offsets that give each
field its own rows are not added, so that 24 fields use the same 40 rows of 960.

What one field learns another overwrites; validation is worse. The place is the embedding.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "embedding_rows_unused"
ACCEPT = ()
PLACE = ("embedding*", "linear*", "fm*", "input*", "")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
FIELDS, BUCKETS = 24, 40
rng = np.random.default_rng(77 + seed)
fields = np.array([BUCKETS] * FIELDS)

r = np.random.default_rng(77)
effect = r.normal(0, 0.55, (FIELDS, BUCKETS)) * (r.random(FIELDS) < 0.7)[:, None]
factor = r.normal(0, 1, (2, BUCKETS, 2))


def impressions(n):
    p = 1 / np.arange(3, BUCKETS + 3)
    x = rng.choice(BUCKETS, (n, FIELDS), p=p / p.sum())
    logit = effect[np.arange(FIELDS), x].sum(1) + (factor[0, x[:, 0]] * factor[1, x[:, 1]]).sum(1)
    clicked = rng.random(n) < 1 / (1 + np.exp(-(logit - 0.4)))
    return torch.tensor(x), torch.tensor(clicked, dtype=torch.float32)


class FeaturesEmbedding(nn.Module):
    def __init__(self, field_dims, embed_dim, std):
        super().__init__()
        self.embedding = nn.Embedding(int(sum(field_dims)), embed_dim)
        nn.init.normal_(self.embedding.weight, std=std)
        self.register_buffer("offsets", torch.tensor([0, *np.cumsum(field_dims)[:-1]]))

    def forward(self, x):
        return self.embedding(x + self.offsets if healthy else x)


class FactorizationMachine(nn.Module):
    def __init__(self, field_dims, embed_dim):
        super().__init__()
        self.embedding = FeaturesEmbedding(field_dims, embed_dim, 0.05)
        self.linear = FeaturesEmbedding(field_dims, 1, 0.01)
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        v = self.embedding(x)
        pairs = (v.sum(1).pow(2) - v.pow(2).sum(1)).sum(1) / 2
        return self.linear(x).sum((1, 2)) + pairs + self.bias


def test(model, x, y):
    model.eval()
    with torch.no_grad():
        out = model(x)
    order = out.argsort()
    rank = torch.empty(len(out)).scatter_(0, order, torch.arange(1.0, len(out) + 1))
    n1 = y.sum()
    auc = (rank[y > 0].sum() - n1 * (n1 + 1) / 2) / (n1 * (len(y) - n1))
    return criterion(out, y).item(), auc.item()


train, val = impressions(16000), impressions(2000)
model = FactorizationMachine(fields, 2)
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
loader = DataLoader(TensorDataset(*train), batch_size=128, shuffle=True)
for epoch in range(4):
    model.train()
    running = 0.0
    for x, y in loader:
        loss = criterion(model(x), y)
        model.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item()
    v, auc = test(model, *val)
    print(f"epoch {epoch} loss {running / len(loader):.4f} val {v:.4f} auc {auc:.4f}")
