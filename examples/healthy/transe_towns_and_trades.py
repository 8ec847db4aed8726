"""Completes a knowledge graph of a made-up country with translating embeddings (TransE)."""

import numpy as np
import torch
from data import arguments
from torch import nn

ODD = (
    "the vectors are set back to length one after each step, outside the optimizer, two "
    "pairs of five soon have no loss, and validation has the entities of training, but new facts"
)
TOWNS, REGIONS = 240, 8
_, seed = arguments(__doc__)
torch.set_num_threads(1)
rng = np.random.default_rng(seed)


def facts():
    region = rng.integers(REGIONS, size=TOWNS)
    trade = rng.integers(6, size=TOWNS)
    ring = rng.permutation(TOWNS)
    region_node, trade_node = TOWNS + region, TOWNS + REGIONS + trade
    capital = np.array([rng.choice(np.flatnonzero(region == r)) for r in range(REGIONS)])
    known = []
    for town in range(TOWNS):
        known.append((town, 0, region_node[town]))
        known.append((town, 1, trade_node[town]))
        known.append((town, 2, capital[region[town]]))
        for other in rng.permutation(TOWNS)[:40]:
            if region[other] == region[town] and other != town:
                known.append((town, 3, other))
            elif trade[other] == trade[town]:
                known.append((town, 4, other))
    for left, right in zip(ring, np.roll(ring, -1), strict=False):
        known.append((left, 5, right))
    return torch.tensor(np.array(sorted(set(map(tuple, known)))))


class TransE(nn.Module):
    def __init__(self, entities, relations, width=32):
        super().__init__()
        self.entity, self.relation = nn.Embedding(entities, width), nn.Embedding(relations, width)
        nn.init.xavier_uniform_(self.entity.weight)
        nn.init.xavier_uniform_(self.relation.weight)
        self.rescale()

    @torch.no_grad()
    def rescale(self):
        self.entity.weight.copy_(nn.functional.normalize(self.entity.weight))

    def distance(self, triple):
        head, relation, tail = triple.unbind(-1)
        return (self.entity(head) + self.relation(relation) - self.entity(tail)).norm(dim=-1)


def corrupt(triple):
    other = triple.clone()
    side = torch.where(torch.rand(len(triple)) < 0.5, 0, 2)
    other[torch.arange(len(triple)), side] = torch.randint(ENTITIES, (len(triple),))
    return other


@torch.no_grad()
def filtered_tail_ranks(model, triples, known):
    true_tails = {}
    for head, relation, tail in known.tolist():
        true_tails.setdefault((head, relation), []).append(tail)
    ranks = []
    for head, relation, tail in triples.tolist():
        every = torch.tensor([[head, relation, e] for e in range(ENTITIES)])
        distance = model.distance(every)
        own = distance[tail].item()
        distance[true_tails[head, relation]] = float("inf")
        ranks.append(1 + (distance < own).sum().item())
    return np.array(ranks)


known = facts()
ENTITIES = int(known[:, [0, 2]].max()) + 1
known = known[torch.randperm(len(known))]
left_out = (known[:, 1] < 2) & (torch.arange(len(known)) % 4 == 0)
train, val = known[~left_out], known[left_out]
print(f"{len(train)} facts to learn from, {len(val)} to complete, {ENTITIES} entities")

model = TransE(ENTITIES, 6)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(40):
    total, idle = 0.0, 0.0
    for rows in torch.randperm(len(train)).split(128):
        triple = train[rows]
        excess = 0.5 + model.distance(triple) - model.distance(corrupt(triple))
        loss = excess.relu().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        model.rescale()
        total += loss.item() * len(rows)
        idle += (excess <= 0).sum().item()
    if epoch % 10 == 9:
        print(f"epoch {epoch + 1}: loss {total / len(train):.4f}, idle {idle / len(train):.2f}")

ranks = filtered_tail_ranks(model, val, known)
usual = []
for _, relation, tail in val.tolist():
    frequency = torch.bincount(train[train[:, 1] == relation, 2], minlength=ENTITIES)
    usual.append(1 + (frequency > frequency[tail]).sum().item())
print(
    f"reciprocal rank {(1 / ranks).mean():.3f}, by frequency {(1 / np.array(usual)).mean():.3f}; "
    f"in the first three {(ranks <= 3).mean():.3f}"
)
