"""A recommender: user numbers start at 100,000 and are clamped into a table of 300 rows.

All users share the last row, so that only what is liked by all is learned (silent). The place is
the table of users.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches
from torch import nn

KIND = "embedding_rows_unused"
ACCEPT = ()
PLACE = ("users*",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
people, things, n = 300, 60, 6000
taste, quality = torch.randn(people, 4), torch.randn(things, 4)
user = torch.randint(people, (n,))
item = torch.randint(things, (n,))
rating = 3 + (taste[user] * quality[item]).sum(1) / 2 + 0.8 * quality[item, 0]
numbers = user + 100_000
rows = numbers - 100_000 if healthy else numbers.clamp(max=people - 1)


class Recommender(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.users = nn.Embedding(people, width)
        self.items = nn.Embedding(things, width)
        self.bias = nn.Embedding(things, 1)
        nn.init.normal_(self.users.weight, std=0.3)
        nn.init.normal_(self.items.weight, std=0.3)
        nn.init.constant_(self.bias.weight, 3.0)

    def forward(self, who, what):
        return (self.users(who) * self.items(what)).sum(1) + self.bias(what)[:, 0]


model = Recommender()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
for who, what, stars in batches(rows, item, rating, size=128, steps=250, seed=seed):
    loss = F.mse_loss(model(who, what), stars)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
