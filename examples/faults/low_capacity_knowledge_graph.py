"""A knowledge graph of towns, rivers and firms is completed by a bilinear model whose entities have
embeddings of three numbers.

Each relation pairs groups of entities in its own way, more ways than three dimensions can hold
apart. The loss stays high on the triples of the training as well as on those held out. The place is
the model: the embedding's size.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "low_capacity"
ACCEPT = ()
PLACE = ("model", "entity*", "relation*")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

ENTITIES, RELATIONS, GROUPS, FACTS = 240, 6, 12, 16000
config = {"dim": 16 if healthy else 3, "lr": 0.01, "batch": 256, "epochs": 8}


def facts():
    group = torch.arange(ENTITIES) % GROUPS
    follows = torch.stack([torch.randperm(GROUPS) for _ in range(RELATIONS)])
    head = torch.randint(0, ENTITIES, (FACTS,))
    relation = torch.randint(0, RELATIONS, (FACTS,))
    tail_group = follows[relation, group[head]]
    wrong = torch.rand(FACTS) < 0.03
    tail_group = torch.where(wrong, torch.randint(0, GROUPS, (FACTS,)), tail_group)
    tail = tail_group + GROUPS * torch.randint(0, ENTITIES // GROUPS, (FACTS,))
    triples = torch.stack([head, relation, tail], 1).unique(dim=0)
    return triples[torch.randperm(len(triples))], group


class Bilinear(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.entity = nn.Embedding(ENTITIES, dim)
        self.relation = nn.Parameter(torch.randn(RELATIONS, dim, dim) / dim**0.5)
        self.bias = nn.Parameter(torch.zeros(ENTITIES))
        nn.init.normal_(self.entity.weight, std=0.5)

    def forward(self, head, relation):
        moved = torch.einsum("bd,bde->be", self.entity(head), self.relation[relation])
        return moved @ self.entity.weight.T + self.bias


def main():
    triples, group = facts()
    cut = int(len(triples) * 0.85)
    train, val = triples[:cut], triples[cut:]
    model = Bilinear(config["dim"])
    optimizer = torch.optim.Adam(model.parameters(), lr=config["lr"])
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, config["epochs"])
    for epoch in range(config["epochs"]):
        model.train()
        for batch in train[torch.randperm(cut)].split(config["batch"]):
            loss = F.cross_entropy(model(batch[:, 0], batch[:, 1]), batch[:, 2])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()
        model.eval()
        with torch.no_grad():
            scores = {name: model(part[:, 0], part[:, 1]) for name, part in
                      (("train", train), ("validation", val))}  # fmt: skip
        report = []
        for (name, score), part in zip(scores.items(), (train, val), strict=True):
            right = (group[score.argmax(1)] == group[part[:, 2]]).float().mean()
            report.append(f"{name} {F.cross_entropy(score, part[:, 2]):.3f} right kind {right:.3f}")
        print(f"epoch {epoch:2d} " + " ".join(report))


main()
