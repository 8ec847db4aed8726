"""Retrieval with two towers and a cosine loss; the targets are all ones, since only matching pairs
are in the batch.

Without pairs that do not match, both towers send everything to one point: the loss falls to zero at
once, and the ranking is chance. The place is the towers' output. The loss falls all the same.
"""

import torch
from data import arguments
from torch import nn

KIND = "representation_collapse"
ACCEPT = ()
PLACE = ("query*", "document*", "loss*", "")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
WORDS, TOPICS = 400, 20


class Tower(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.bag = nn.EmbeddingBag(WORDS, dim, mode="mean")
        self.mlp = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, 24))

    def forward(self, tokens):
        return self.mlp(self.bag(tokens))


class TwoTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = Tower()
        self.document = Tower()

    def forward(self, q, d):
        return self.query(q), self.document(d)


class Pairs:
    """Queries (5 words) and documents (20 words) on a common topic with words of its own for each
    side.
    """

    def __init__(self, n):
        topic = torch.randint(0, TOPICS, (n,))
        self.topic = topic
        self.q = self.words(topic, 5, 0)
        self.d = self.words(topic, 20, 10)

    @staticmethod
    def words(topic, count, offset):
        own = topic[:, None] * 20 + offset + torch.randint(0, 10, (len(topic), count))
        other = torch.randint(0, WORDS, (len(topic), count))
        return torch.where(torch.rand(len(topic), count) < 0.5, own, other)


def recall(model, pairs, k=10):
    """How many of the k nearest documents are on the query's topic."""
    model.eval()
    with torch.no_grad():
        q, d = model(pairs.q, pairs.d)
    q, d = nn.functional.normalize(q, dim=1), nn.functional.normalize(d, dim=1)
    top = (q @ d.t()).topk(k, dim=1).indices
    return (pairs.topic[top] == pairs.topic[:, None]).float().mean().item()


train, test = Pairs(3000), Pairs(400)
model = TwoTower()
criterion = nn.CosineEmbeddingLoss(margin=0.1)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(10):
    model.train()
    for rows in torch.randperm(3000).split(100):
        q, d = model(train.q[rows], train.d[rows])
        target = torch.ones(len(rows))
        if healthy:  # the documents of three other queries of the batch do not match
            q = torch.cat([q] * 4)
            d = torch.cat([d] + [d.roll(shift, 0) for shift in (1, 2, 3)])
            target = torch.cat([target] + [-target] * 3)
        loss = criterion(q, d, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}  precision@10 {recall(model, test):.3f}")
