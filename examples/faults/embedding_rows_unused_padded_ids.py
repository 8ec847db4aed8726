"""Ratings of films by matrix factorisation with biases; the film ids of the two files don't fit
together.

The catalogue's ids have leading zeros ("0042"), the ratings' ids have none ("42"):
item_index.get(id, 0) finds only ids of four digits, and nearly every film becomes row 0,
"unknown". The rows of the item embedding and of the item bias stay at their initial values. The
place is item_factors, item_bias (and the loader/input).
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "embedding_rows_unused"
ACCEPT = ()
PLACE = ("item_factors*", "item_bias*", "input*", "loader")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

rng = np.random.default_rng(seed + 15)
N_USERS, N_ITEMS = 400, 1030

# catalogue.csv and ratings.csv
catalogue = [f"{i:04d}" for i in range(1, N_ITEMS + 1)]
quality = rng.normal(0, 0.65, N_ITEMS)
genre = rng.normal(0, 1, (N_ITEMS, 3))
mood = rng.normal(0, 0.5, N_USERS)
likes = rng.normal(0, 0.3, (N_USERS, 3))
popular = rng.permutation(1.0 / (np.arange(N_ITEMS) + 40) ** 0.7)
popular /= popular.sum()
ratings = []
for u in range(N_USERS):
    for i in rng.choice(N_ITEMS, rng.integers(50, 110), replace=False, p=popular):
        stars = 3.4 + quality[i] + mood[u] + likes[u] @ genre[i] + rng.normal(0, 0.5)
        ratings.append((u, str(i + 1), float(np.clip(np.round(stars * 2) / 2, 0.5, 5))))
rng.shuffle(ratings)
ratings = [(int(u), str(i), float(s)) for u, i, s in ratings]

item_index = {name: k + 1 for k, name in enumerate(catalogue)}


class Ratings(Dataset):
    def __init__(self, rows):
        self.users = torch.tensor([r[0] for r in rows])
        self.items = torch.tensor(
            [item_index.get(r[1].zfill(4) if healthy else r[1], 0) for r in rows]
        )
        self.stars = torch.tensor([r[2] for r in rows])

    def __len__(self):
        return len(self.stars)

    def __getitem__(self, k):
        return self.users[k], self.items[k], self.stars[k]


class MatrixFactorization(nn.Module):
    def __init__(self, n_users, n_items, k=6, mean=3.4):
        super().__init__()
        self.user_factors = nn.Embedding(n_users, k)
        self.item_factors = nn.Embedding(n_items, k)
        self.user_bias = nn.Embedding(n_users, 1)
        self.item_bias = nn.Embedding(n_items, 1)
        self.mean = nn.Parameter(torch.tensor(mean))
        for e in (self.user_factors, self.item_factors):
            nn.init.normal_(e.weight, std=0.1)
        for e in (self.user_bias, self.item_bias):
            nn.init.zeros_(e.weight)

    def forward(self, users, items):
        p, q = self.user_factors(users), self.item_factors(items)
        bias = self.user_bias(users) + self.item_bias(items)
        return (p * q).sum(1) + bias.squeeze(1) + self.mean, (
            p.pow(2).sum(1) + q.pow(2).sum(1)
        ).mean() + bias.pow(2).mean()


cut = int(0.85 * len(ratings))
train, val = Ratings(ratings[:cut]), Ratings(ratings[cut:])
loader = DataLoader(train, batch_size=128, shuffle=True)
model = MatrixFactorization(N_USERS, N_ITEMS + 1, mean=float(train.stars.mean()))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(16):
    model.train()
    errors = 0.0
    for users, items, stars in loader:
        pred, penalty = model(users, items)
        mse = ((pred - stars) ** 2).mean()
        loss = mse + 0.1 * penalty
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        errors += mse.item() * len(stars)
    model.eval()
    with torch.no_grad():
        pred, _ = model(val.users, val.items)
        rmse = ((pred - val.stars) ** 2).mean().sqrt().item()
    print(
        f"epoch {epoch + 1:2d}: train rmse {(errors / len(train)) ** 0.5:.4f}, val rmse {rmse:.4f}"
    )
