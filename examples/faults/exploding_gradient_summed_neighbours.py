"""A graph network of six layers tells the members of three groups apart by noisy marks and by who
knows whom.

Every layer adds up the neighbours, and the adjacency matrix is used as it is, without division by
the number of neighbours. Each person knows about ten others, so signals grow about tenfold per
layer, and gradients on the way back likewise: they start at many thousands and the first steps
throw the weights away. The place is the message layers.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "exploding_gradient"
ACCEPT = ("poor_weight_init", "learning_rate_too_high")
PLACE = ("layers*", "embed*")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
PEOPLE, GROUPS = 40, 3


def societies(n, g):
    """Marks (n, 40, 6), who knows whom (n, 40, 40), groups (n, 40)."""
    group = torch.randint(0, GROUPS, (n, PEOPLE), generator=g)
    same = group[:, :, None] == group[:, None]
    known = (torch.rand(n, PEOPLE, PEOPLE, generator=g) < torch.where(same, 0.5, 0.08)).float()
    known = known.triu(1)
    known = known + known.transpose(1, 2) + torch.eye(PEOPLE)
    marks = torch.zeros(n, PEOPLE, 6)
    marks[..., :GROUPS] = F.one_hot(group, GROUPS).float()
    return marks + 1.2 * torch.randn(marks.shape, generator=g), known, group


class GraphLayer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.own, self.others = nn.Linear(width, width), nn.Linear(width, width, bias=False)

    def forward(self, h, a):
        return F.relu(self.own(h) + self.others(a @ h))


class GraphNet(nn.Module):
    def __init__(self, width=32, depth=6):
        super().__init__()
        self.embed = nn.Linear(6, width)
        self.layers = nn.ModuleList(GraphLayer(width) for _ in range(depth))
        self.out = nn.Linear(width, GROUPS)
        for layer in self.layers:
            nn.init.xavier_normal_(layer.own.weight)
            nn.init.xavier_normal_(layer.others.weight)

    def forward(self, marks, a):
        if healthy:
            a = a / a.sum(-1, keepdim=True)
        h = self.embed(marks)
        for layer in self.layers:
            h = layer(h, a)
        return self.out(h)


g = torch.Generator().manual_seed(seed)
train = DataLoader(TensorDataset(*societies(400, g)), batch_size=16, shuffle=True)
marks, known, group = societies(100, g)
model = GraphNet()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
for epoch in range(10):
    losses = []
    for m, a, y in train:
        loss = F.cross_entropy(model(m, a).flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    schedule.step()
    with torch.no_grad():
        out = model(marks, known)
    val = F.cross_entropy(out.flatten(0, 1), group.flatten()).item()
    right = (out.argmax(-1) == group).float().mean().item()
    print(f"epoch {epoch} train {sum(losses) / len(losses):.4f} val {val:.4f} accuracy {right:.3f}")
