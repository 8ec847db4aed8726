"""A recommender (matrix factorisation) whose user table is random and never trained.

No table was at hand, so the author gave random numbers to Embedding.from_pretrained, which freezes
by default. The items alone cannot explain the ratings. The place is the user table ("users"). The
twin says freeze=False.
"""

import torch
from data import arguments
from torch import nn

KIND = "frozen_parameters"
ACCEPT = ()
PLACE = ("users.weight", "users")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
USERS, ITEMS, DIM = 150, 100, 5

g = torch.Generator().manual_seed(seed)
taste, kind = torch.randn(USERS, 4, generator=g), torch.randn(ITEMS, 4, generator=g)
u = torch.randint(0, USERS, (8000,), generator=g)
i = torch.randint(0, ITEMS, (8000,), generator=g)
r = (taste[u] * kind[i]).sum(1) / 2 + 0.2 * torch.randn(8000, generator=g)
train, val = slice(0, 6500), slice(6500, None)


class Factors(nn.Module):
    def __init__(self):
        super().__init__()
        start = torch.randn(USERS, DIM) * 0.5
        self.users = nn.Embedding.from_pretrained(start, freeze=not healthy)
        self.items = nn.Embedding(ITEMS, DIM)
        nn.init.normal_(self.items.weight, std=0.5)
        self.bias = nn.Embedding(ITEMS, 1)
        nn.init.zeros_(self.bias.weight)

    def forward(self, user, item):
        return (self.users(user) * self.items(item)).sum(1) + self.bias(item).squeeze(1)


model = Factors()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.02, weight_decay=0.01)
mse = nn.MSELoss()
ut, it, rt = u[train], i[train], r[train]
for epoch in range(12):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(ut)).split(128):
        loss = mse(model(ut[rows], it[rows]), rt[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    model.eval()
    with torch.no_grad():
        val_loss = mse(model(u[val], i[val]), r[val]).item()
    print(f"epoch {epoch + 1:2d} train MSE {total / len(ut):.4f} val MSE {val_loss:.4f}")
print(f"variance of the ratings: {r[val].var().item():.4f}")
