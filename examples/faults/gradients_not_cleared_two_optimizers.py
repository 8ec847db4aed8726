"""A recommender has SGD for its embeddings and Adam for its layers; zero_grad() is only called on
Adam.

Both are stepped. The gradients of the embeddings add up over all batches, as if there was a
momentum of 1, and the tables swing ever wider. The place is the loop (the embeddings' gradients).
The loss falls first, then rises (not silent). Exact: backward starts with gradients that a step has
used.
"""

import torch
from data import arguments
from torch import nn

KIND = "gradients_not_cleared"
ACCEPT = ()
PLACE = ("loop", "users*", "items*")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
USERS, ITEMS, RANK = 150, 100, 8


def ratings(n, g):
    taste = torch.randn(USERS, 3, generator=torch.Generator().manual_seed(1))
    trait = torch.randn(ITEMS, 3, generator=torch.Generator().manual_seed(2))
    u = torch.randint(0, USERS, (n,), generator=g)
    i = torch.randint(0, ITEMS, (n,), generator=g)
    stars = (taste[u] * trait[i]).sum(1) / 1.7 + 0.3 * torch.randn(n, generator=g)
    return u, i, stars


class Recommender(nn.Module):
    def __init__(self):
        super().__init__()
        self.users = nn.Embedding(USERS, RANK)
        self.items = nn.Embedding(ITEMS, RANK)
        self.tower = nn.Sequential(nn.Linear(3 * RANK, 32), nn.ReLU(), nn.Linear(32, 1))
        nn.init.normal_(self.users.weight, std=0.3)
        nn.init.normal_(self.items.weight, std=0.3)

    def forward(self, u, i):
        u, i = self.users(u), self.items(i)
        return self.tower(torch.cat([u, i, u * i], 1)).squeeze(1)


def rmse(model, u, i, stars):
    model.eval()
    with torch.no_grad():
        error = ((model(u, i) - stars) ** 2).mean().sqrt().item()
    model.train()
    return error


g = torch.Generator().manual_seed(seed)
u, i, stars = ratings(9000, g)
held_out = ratings(1500, g)
model = Recommender()
tables = [*model.users.parameters(), *model.items.parameters()]
table_optimizer = torch.optim.SGD(tables, lr=5.0)
dense_optimizer = torch.optim.Adam(model.tower.parameters(), lr=5e-3)

for epoch in range(12):
    losses = []
    for rows in torch.randperm(len(u), generator=g).split(128):
        dense_optimizer.zero_grad()
        if healthy:
            table_optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(u[rows], i[rows]), stars[rows])
        loss.backward()
        table_optimizer.step()
        dense_optimizer.step()
        losses.append(loss.detach())
    print(
        f"epoch {epoch}: mse {torch.stack(losses).mean():.3f}, "
        f"held-out rmse {rmse(model, *held_out):.3f} (spread {held_out[2].std():.2f})"
    )
