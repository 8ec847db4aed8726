"""Two towers match readers with news by cosine; some readers have not read anything yet.

The vectors are normalised by hand, `v / v.norm()`. A reader without history has a sum of zero
topic vectors, and the tower has no bias, so the vector is 0 and its norm is 0: the row is NaN, the
loss is NaN, and with the first step so are all weights. The place is the reader's tower and its
normalisation. The twin calls `F.normalize`, which has an epsilon.
"""

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

KIND = "division_by_zero_norm"
ACCEPT = ()
PLACE = ("reader_tower", "unit", "input*", "loader", "loss*")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
TOPICS = 30


class Clicks(Dataset):
    """What a reader read before (counts of topics, one in forty new), and the article clicked."""

    def __init__(self, n, groups, g):
        taste = groups[torch.randint(0, len(groups), (n,), generator=g)]
        read = torch.randint(3, 12, (n,), generator=g)
        self.history = torch.zeros(n, TOPICS)
        for i in range(n):
            seen = torch.multinomial(taste[i], int(read[i]), replacement=True, generator=g)
            self.history[i].index_add_(0, seen, torch.ones(len(seen)))
        self.history[torch.rand(n, generator=g) < 0.025] = 0.0
        clicked = torch.multinomial(taste, 3, replacement=True, generator=g)
        self.article = F.one_hot(clicked, TOPICS).sum(1).float()

    def __len__(self):
        return len(self.history)

    def __getitem__(self, i):
        return self.history[i], self.article[i]


class Unit(nn.Module):
    def forward(self, v):
        return F.normalize(v, dim=1) if healthy else v / v.norm(dim=1, keepdim=True)


class TwoTowers(nn.Module):
    def __init__(self, width=48, out=16):
        super().__init__()
        self.reader_tower = nn.Sequential(
            nn.Linear(TOPICS, width, bias=False), nn.ReLU(), nn.Linear(width, out, bias=False)
        )
        self.article_tower = nn.Sequential(
            nn.Linear(TOPICS, width), nn.ReLU(), nn.Linear(width, out)
        )
        self.unit = Unit()
        self.log_scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, history, article):
        reader = self.unit(self.reader_tower(history.sqrt()))
        return self.log_scale.exp() * reader @ self.unit(self.article_tower(article)).T


def recall_at_5(scores):
    best = scores.topk(5, dim=1).indices
    return (best == torch.arange(len(scores))[:, None]).any(1).float().mean().item()


g = torch.Generator().manual_seed(seed)
groups = torch.distributions.Dirichlet(torch.full((TOPICS,), 0.08)).sample((40,)) + 1e-4
train = DataLoader(Clicks(6000, groups, g), batch_size=64, shuffle=True, drop_last=True)
val = DataLoader(Clicks(512, groups, g), batch_size=64)
model = TwoTowers()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-5)

for epoch in range(8):
    model.train()
    for history, article in train:
        scores = model(history, article)
        loss = F.cross_entropy(scores, torch.arange(len(scores)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        all_scores = [model(h, a) for h, a in val]
    recall = sum(map(recall_at_5, all_scores)) / len(all_scores)
    val_loss = sum(F.cross_entropy(s, torch.arange(len(s))) for s in all_scores) / len(all_scores)
    print(
        f"epoch {epoch:2d} train {loss.item():.3f} val {val_loss:.3f} recall@5 of 64 {recall:.3f}"
    )
