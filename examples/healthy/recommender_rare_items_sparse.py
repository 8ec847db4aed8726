"""Clicks on articles by two embeddings with SparseAdam; a third of the articles hardly ever turns
up.

Popularity falls as one over the rank, so most rows of the table are touched in few steps and many
in none; they stay at their small start, which is the right guess for what nobody has seen.
Negatives are drawn by popularity.
"""

import torch
from data import arguments
from torch import nn

ODD = (
    "most rows of the item table get no gradient in most steps, some never; gradients are sparse "
    "tensors"
)

_, seed = arguments(__doc__)

USERS, ITEMS, RANK, N = 400, 1500, 8, 26000
g = torch.Generator().manual_seed(seed)
popularity = 1 / torch.arange(1, ITEMS + 1).float()
taste, topic = torch.randint(6, (USERS,), generator=g), torch.randint(6, (ITEMS,), generator=g)
user = torch.randint(USERS, (N,), generator=g)
chance = popularity * torch.where(taste[:, None] == topic, 12.0, 1.0)
item = torch.multinomial(chance[user], 1, generator=g)[:, 0]
cut = int(0.85 * N)


class TwoTables(nn.Module):
    def __init__(self):
        super().__init__()
        self.user = nn.Embedding(USERS, RANK, sparse=True)
        self.item = nn.Embedding(ITEMS, RANK, sparse=True)
        self.bias = nn.Embedding(ITEMS, 1, sparse=True)
        nn.init.normal_(self.user.weight, std=0.1)
        nn.init.normal_(self.item.weight, std=0.1)
        nn.init.zeros_(self.bias.weight)

    def forward(self, user, item):
        return (self.user(user) * self.item(item)).sum(-1) + self.bias(item).squeeze(-1)


def pairs(rows):
    """Each click against an article that was clicked by anybody."""
    other = item[torch.randint(cut, (len(rows),), generator=g)]
    return user[rows], item[rows], other


def auc(model, rows, other):
    with torch.no_grad():
        return (model(user[rows], item[rows]) > model(user[rows], other)).float().mean().item()


model = TwoTables()
optimizer = torch.optim.SparseAdam(list(model.parameters()), lr=4e-3)
val_rows = torch.arange(cut, N)
val_other = item[torch.randint(cut, (N - cut,), generator=g)]
for epoch in range(14):
    model.train()
    total = count = 0
    for rows in torch.randperm(cut, generator=g).split(256):
        who, clicked, other = pairs(rows)
        loss = nn.functional.softplus(model(who, other) - model(who, clicked)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total, count = total + loss.item(), count + 1
    model.eval()
    with torch.no_grad():
        val = nn.functional.softplus(
            model(user[val_rows], val_other) - model(user[val_rows], item[val_rows])
        ).mean()
    print(
        f"epoch {epoch} train {total / count:.4f} val {val.item():.4f} "
        f"AUC {auc(model, val_rows, val_other):.3f}"
    )
