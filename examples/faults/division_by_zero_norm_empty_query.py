"""Queries and documents are matched by cosine; a query of unknown words only has the vector 0, and
0 / |0|.

One query in 300 has no known word. Its sum of embeddings (padding, no bias) is zero, its unit
vector NaN, and with it the loss and after one step all weights. The place is the encoder of the
queries. The loss becomes NaN (not silent). Exact.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "division_by_zero_norm"
ACCEPT = ()
PLACE = ("query*", "encoder*")
SILENT = False
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)
VOCABULARY, TOPICS, LENGTH = 400, 40, 8
g = torch.Generator().manual_seed(seed)


def write(topic, known):
    """Word numbers; those not in the vocabulary of the tokenizer become 0, the padding."""
    n = len(topic)
    own = topic[:, None] * 10 + torch.randint(0, 10, (n, LENGTH), generator=g)
    other = torch.randint(0, VOCABULARY, (n, LENGTH), generator=g)
    ids = torch.where(torch.rand(n, LENGTH, generator=g) < 0.7, own, other) + 1
    return ids.masked_fill(torch.rand(n, LENGTH, generator=g) > known, 0)


def pairs(n):
    topic = torch.randint(0, TOPICS, (n,), generator=g)
    query, document = write(topic, 0.85), write(topic, 1.0)
    query[query.eq(0).all(1), 0] = topic[query.eq(0).all(1)] * 10 + 1
    return query, document, topic


class Encoder(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.words = nn.Embedding(VOCABULARY + 1, width, padding_idx=0)
        self.project = nn.Linear(width, width, bias=False)

    def forward(self, ids):
        v = self.project(self.words(ids).sum(1))
        norm = v.norm(dim=-1, keepdim=True)
        if healthy:
            norm = norm.clamp(min=1e-6)
        return v / norm


class TwoTowers(nn.Module):
    def __init__(self):
        super().__init__()
        self.query_encoder = Encoder()
        self.document_encoder = Encoder()

    def forward(self, query, document):
        return self.query_encoder(query) @ self.document_encoder(document).T / 0.1


query, document, _ = pairs(3000)
query[torch.randperm(len(query), generator=g)[:10]] = 0  # wholly unknown
val_query, val_document, val_topic = pairs(300)

model = TwoTowers()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(6):
    model.train()
    for rows in torch.randperm(len(query), generator=g).split(40):
        scores = model(query[rows], document[rows])
        target = torch.arange(len(rows))
        loss = (F.cross_entropy(scores, target) + F.cross_entropy(scores.T, target)) / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        best = model(val_query, val_document).argmax(1)
    hit = (val_topic[best] == val_topic).float().mean().item()
    print(f"epoch {epoch}: loss {loss.item():.3f}, right topic first {hit:.3f}")
