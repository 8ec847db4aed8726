"""A model of a small knowledge graph scores triples by entity and relation vectors (DistMult).

Its tables start from random values of the author's own choice and are made by
nn.Embedding.from_pretrained. from_pretrained freezes the table unless told otherwise, so the random
entity vectors are never trained; only the relations and the small network on top learn, and facts
kept aside are ranked badly. The place is the entities' table.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "frozen_parameters"
ACCEPT = ()
PLACE = ("entity*",)
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
ENTITIES, RELATIONS, WIDTH = 150, 6, 16


def facts(g):
    """For each entity and relation the entity that fits best: (n, 3), in random order."""
    hidden = F.normalize(torch.randn(ENTITIES, 4, generator=g), dim=1)
    relation = torch.randn(RELATIONS, 4, generator=g).sign()
    score = torch.einsum("hd,rd,td->hrt", hidden, relation, hidden)
    score[torch.arange(ENTITIES), :, torch.arange(ENTITIES)] = -9
    tails = score.topk(6, dim=2).indices
    h, r, k = torch.meshgrid(
        torch.arange(ENTITIES), torch.arange(RELATIONS), torch.arange(6), indexing="ij"
    )
    triples = torch.stack([h.flatten(), r.flatten(), tails[h, r, k].flatten()], 1)
    return triples[torch.randperm(len(triples), generator=g)]


class DistMult(nn.Module):
    def __init__(self):
        super().__init__()
        table = torch.empty(ENTITIES, WIDTH).uniform_(-0.5, 0.5)
        self.entity = nn.Embedding.from_pretrained(table, freeze=not healthy)
        self.relation = nn.Embedding(RELATIONS, WIDTH)
        self.project = nn.Linear(WIDTH, WIDTH)
        self.drop = nn.Dropout(0.2)

    def forward(self, head, relation):
        """Scores of every entity as the tail."""
        query = self.drop(self.project(self.entity(head)) * self.relation(relation))
        return query @ self.entity.weight.T


def rank(model, triples):
    """The loss and the mean reciprocal rank of the true tail."""
    model.eval()
    with torch.no_grad():
        scores = model(triples[:, 0], triples[:, 1])
        loss = F.cross_entropy(scores, triples[:, 2]).item()
        own = scores.gather(1, triples[:, 2:])
        return loss, (1 / (1 + (scores > own).sum(1))).mean().item()


triples = facts(torch.Generator().manual_seed(seed))
train, val = triples[:4700], triples[4700:]
model = DistMult()
optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-2)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 12)
for epoch in range(12):
    model.train()
    losses = []
    for batch in train[torch.randperm(len(train))].split(100):
        loss = F.cross_entropy(model(batch[:, 0], batch[:, 1]), batch[:, 2])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    schedule.step()
    print(
        f"epoch {epoch:2d} train {sum(losses) / len(losses):.4f}",
        "val {:.4f} reciprocal rank {:.3f}".format(*rank(model, val)),
    )
