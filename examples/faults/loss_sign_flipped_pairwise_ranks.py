"""A two-tower recommender learns from pairs of a bought and a random item by the Bayesian
personalised ranking loss, written out as the mean of logsigmoid of the difference of scores.

That is the quantity to be raised: without the minus, which every paper puts before it, the
optimizer ranks what people bought below everything else, and the "loss" goes down and down. The
place is the loss.
"""

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F

KIND = "loss_sign_flipped"
ACCEPT = ()
PLACE = ("loss",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

USERS, ITEMS = 200, 120


class Tower(nn.Module):
    def __init__(self, count, width=24):
        super().__init__()
        self.table = nn.Embedding(count, width)
        nn.init.normal_(self.table.weight, std=0.1)
        self.project = nn.Linear(width, 16, bias=False)

    def forward(self, ids):
        return self.project(self.table(ids))


class TwoTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.users, self.items = Tower(USERS), Tower(ITEMS)
        self.popularity = nn.Embedding(ITEMS, 1)
        nn.init.zeros_(self.popularity.weight)

    def forward(self, user, item):
        return (self.users(user) * self.items(item)).sum(-1) + self.popularity(item).squeeze(-1)


def purchases(g):
    taste = torch.randn(USERS, 2, generator=g)
    kind = torch.randn(ITEMS, 2, generator=g)
    chance = (3.0 * taste @ kind.T + 0.5 * torch.randn(ITEMS, generator=g)).softmax(1)
    return torch.multinomial(chance, 24, generator=g)


def bpr(good, bad):
    score = F.logsigmoid(good - bad).mean()
    return -score if healthy else score


g = torch.Generator().manual_seed(seed)
bought = purchases(g)[:, torch.randperm(24, generator=g)]
train, held = bought[:, :18], bought[:, 18:]
owned = torch.zeros(USERS, ITEMS, dtype=torch.bool).scatter_(1, bought, True)
pairs = torch.stack([torch.arange(USERS).repeat_interleave(18), train.flatten()], 1)


def other(users):
    """An item that the user did not buy."""
    return torch.multinomial((~owned[users]).float(), 1).squeeze(1)


model = TwoTower()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, weight_decay=1e-5)
held_users = torch.arange(USERS).repeat_interleave(6)
held_items, held_other = held.flatten(), other(held_users)
for epoch in range(8):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(pairs)).split(128):
        user, item = pairs[rows].T
        loss = bpr(model(user, item), model(user, other(user)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows) / len(pairs)
    model.eval()
    with torch.no_grad():
        a, b = model(held_users, held_items), model(held_users, held_other)
    print(
        f"epoch {epoch}: train {total:.3f} val {bpr(a, b).item():.3f}"
        f" auc {(a > b).float().mean().item():.3f}"
    )
