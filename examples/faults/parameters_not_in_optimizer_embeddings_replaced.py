"""A recommender by matrix factorisation whose embeddings are replaced after the optimizer was made.

The tables are made anew once the numbers of users and items are known, and the optimizer still has
the old ones. Only the biases train, which explains a part of the ratings and no more. The place is
the optimizer's parameters. The twin makes the optimizer after the replacement.
"""

import torch
from data import arguments
from torch import nn

KIND = "parameters_not_in_optimizer"
ACCEPT = ()
PLACE = ("optimizer", "user", "item", "user.weight", "item.weight")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
USERS, ITEMS, RATINGS = 120, 80, 5000
u, i = torch.randint(USERS, (RATINGS,)), torch.randint(ITEMS, (RATINGS,))
taste, style = torch.randn(USERS, 3), torch.randn(ITEMS, 3)
r = 3 + 0.3 * torch.randn(USERS)[u] + 0.3 * torch.randn(ITEMS)[i]
r = r + 0.6 * (taste[u] * style[i]).sum(1) + 0.2 * torch.randn(RATINGS)
train, test = slice(0, 4000), slice(4000, RATINGS)


class Recommender(nn.Module):
    def __init__(self, users=1, items=1, width=6):
        super().__init__()
        self.width = width
        self.user_bias, self.item_bias = nn.Embedding(USERS, 1), nn.Embedding(ITEMS, 1)
        self.mean = nn.Parameter(torch.tensor(3.0))
        self.resize(users, items)

    def resize(self, users, items):
        self.user = nn.Embedding(users, self.width)
        self.item = nn.Embedding(items, self.width)
        for table in (self.user, self.item, self.user_bias, self.item_bias):
            nn.init.normal_(table.weight, std=0.3)

    def forward(self, u, i):
        bias = (self.user_bias(u) + self.item_bias(i)).squeeze(1)
        return self.mean + bias + (self.user(u) * self.item(i)).sum(1)


model = Recommender()
if healthy:
    model.resize(USERS, ITEMS)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.02, weight_decay=0.1)
if not healthy:
    model.resize(USERS, ITEMS)

for epoch in range(12):
    for rows in torch.randperm(4000).split(100):
        loss = nn.functional.mse_loss(model(u[rows], i[rows]), r[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        error = (model(u[test], i[test]) - r[test]).square().mean().sqrt().item()
    print(
        f"epoch {epoch + 1}: batch loss {loss.item():.3f}  test RMSE {error:.3f}"
        f"  (the mean alone: {r[test].std().item():.3f})"
    )
