"""A recommender trained on pairs whose loss lacks the minus sign before the log-likelihood.

The mean of log sigmoid(liked - other) is made small: the loss falls without end, and films that
people liked are ranked last. The place is the loss.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "loss_sign_flipped"
ACCEPT = ()
PLACE = ("loss*", "loop", "")
SILENT = True
EXACT = False
EARLY = True

USERS, ITEMS, TASTES = 120, 80, 4


def preferences(n):
    """n triples: a user, an item they like, an item they like less."""
    user_taste, item_taste = torch.randn(USERS, TASTES), torch.randn(ITEMS, TASTES)
    user = torch.randint(0, USERS, (n,))
    a, b = torch.randint(0, ITEMS, (2, n))
    keep = a != b
    user, a, b = user[keep], a[keep], b[keep]
    gap = (user_taste[user] * (item_taste[a] - item_taste[b])).sum(1)
    first = torch.rand(len(gap)) < torch.sigmoid(2 * gap)
    return user, torch.where(first, a, b), torch.where(first, b, a)


class MatrixFactorization(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.users = nn.Embedding(USERS, dim)
        self.items = nn.Embedding(ITEMS, dim)
        nn.init.normal_(self.users.weight, std=0.1)
        nn.init.normal_(self.items.weight, std=0.1)

    def forward(self, user, item):
        return (self.users(user) * self.items(item)).sum(1)


healthy, seed = arguments(__doc__)
user, liked, other = preferences(20000)
n_train = 16000
model = MatrixFactorization()
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)


def bpr_loss(rows):
    u = user[rows]
    log_likelihood = F.logsigmoid(model(u, liked[rows]) - model(u, other[rows])).mean()
    return -log_likelihood if healthy else log_likelihood


val_rows = torch.arange(n_train, len(user))
for epoch in range(5):
    for rows in torch.randperm(n_train).split(256):
        loss = bpr_loss(rows)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        val_loss = bpr_loss(val_rows)
        gap = model(user[val_rows], liked[val_rows]) - model(user[val_rows], other[val_rows])
        right = (gap > 0).float().mean()
print(f"loss {loss.item():.3f}, validation {val_loss:.3f}, pairs in order {right:.3f}")
