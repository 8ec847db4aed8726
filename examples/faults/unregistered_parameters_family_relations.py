"""A relational graph network on family trees keeps the layers of its relations in a plain dict.

The person wanted one Linear per relation and wrote self.by_relation = {...}: a dict is no module,
so parameters() does not list them, the optimizer never sees them and they stay random. Only the
embedding, the self loop and the output learn. The place is by_relation.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "unregistered_parameters"
ACCEPT = ("parameters_not_in_optimizer",)
PLACE = ("model", "*by_relation*", "conv1*", "conv2*", "optimizer")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

RELATIONS = ("parent", "child", "married", "works_with")


def village(n, generator):
    """People with features, edges of four relations, and a class that depends on neighbours."""
    features = torch.randn(n, 6, generator=generator)
    edges = {}
    for relation, count in zip(RELATIONS, (2, 2, 1, 3), strict=True):
        source = torch.arange(n).repeat(count)
        target = torch.randint(0, n, (n * count,), generator=generator)
        edges[relation] = torch.stack([source, target])
    told = {name: average(features, edges[name], n) for name in RELATIONS}
    score = torch.stack(
        [
            told["parent"][:, 0] * 1.4 + told["works_with"][:, 1],
            -told["child"][:, 0] * 1.4 + told["married"][:, 2],
            told["works_with"][:, 3] - told["parent"][:, 4] * 1.4,
            told["married"][:, 5] - told["child"][:, 1],
        ],
        1,
    )
    label = (score + 0.1 * torch.randn(n, 4, generator=generator)).argmax(1)
    return features, edges, label


def average(x, edge, n):
    total = torch.zeros(n, x.shape[1]).index_add(0, edge[1], x[edge[0]])
    count = torch.zeros(n).index_add(0, edge[1], torch.ones(edge.shape[1]))
    return total / count.clamp(min=1).unsqueeze(1)


class RelationalConv(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.itself = nn.Linear(inputs, outputs)
        layers = {name: nn.Linear(inputs, outputs, bias=False) for name in RELATIONS}
        self.by_relation = nn.ModuleDict(layers) if healthy else layers

    def forward(self, x, edges):
        h = self.itself(x)
        for name in RELATIONS:
            h = h + self.by_relation[name](average(x, edges[name], len(x)))
        return h


class FamilyNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = RelationalConv(6, 12)
        self.conv2 = RelationalConv(12, 12)
        self.out = nn.Linear(12, 4)

    def forward(self, x, edges):
        h = F.relu(self.conv1(x, edges))
        return self.out(F.relu(self.conv2(h, edges)))


def main():
    generator = torch.Generator().manual_seed(seed)
    x, edges, y = village(8000, generator)
    order = torch.randperm(len(y), generator=generator)
    train, val = order[:6500], order[6500:]
    model = FamilyNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=1e-3)
    print(sum(p.numel() for p in model.parameters()), "parameters")
    for step in range(1, 201):
        logits = model(x, edges)
        loss = F.cross_entropy(logits[train], y[train])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            with torch.no_grad():
                logits = model(x, edges)
                right = (logits.argmax(1) == y).float()
                val_loss = F.cross_entropy(logits[val], y[val]).item()
            print(
                f"step {step}: loss {loss.item():.3f}, val {val_loss:.3f}, "
                f"acc {right[train].mean():.3f} / {right[val].mean():.3f}"
            )


main()
