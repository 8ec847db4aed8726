"""Film ratings by factorisation; every film falls on the row for unknown films.

The vocabulary of films is saved as JSON and read back, and JSON's keys are strings. The lookup
with the number itself finds nothing and `get` answers with row 0, kept for unknown films, without
a word. Users are numbered from nought and need no vocabulary. What is learnt is the users' means.
The place is `films` (rows 1 and up), fed with wrong numbers. The twin turns the keys back into
numbers.
"""

import json

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "embedding_rows_unused"
ACCEPT = ()
PLACE = ("films", "films.weight", "film_bias", "film_bias.weight", "input*", "loader")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
USERS, FILMS, UNKNOWN = 150, 100, 0


def ratings(n, r):
    """(user, film number as in the catalogue, stars from 1 to 5)."""
    catalogue = r.choice(90_000, FILMS, replace=False) + 10_000
    taste, kind = r.normal(0, 0.7, (USERS, 3)), r.normal(0, 0.7, (FILMS, 3))
    liked, mild = r.normal(0, 0.6, FILMS), r.normal(0, 0.3, USERS)
    user, film = r.integers(0, USERS, n), r.integers(0, FILMS, n)
    stars = 3.4 + liked[film] + mild[user] + (taste[user] * kind[film]).sum(1) + r.normal(0, 0.4, n)
    return user, catalogue[film], np.clip(stars.round(), 1, 5)


def load_vocabulary(text):
    vocabulary = json.loads(text)
    return {int(k): v for k, v in vocabulary.items()} if healthy else vocabulary


class Ratings(Dataset):
    def __init__(self, rows, vocabulary):
        self.rows, self.vocabulary = list(zip(*rows, strict=False)), vocabulary

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        user, film, stars = self.rows[i]
        return int(user), self.vocabulary.get(int(film), UNKNOWN), np.float32(stars)


class Factorisation(nn.Module):
    def __init__(self, dim=6, mean=3.4):
        super().__init__()
        self.users, self.films = nn.Embedding(USERS, dim), nn.Embedding(FILMS + 1, dim)
        self.user_bias, self.film_bias = nn.Embedding(USERS, 1), nn.Embedding(FILMS + 1, 1)
        self.mean = nn.Parameter(torch.tensor(mean))
        for table in (self.users, self.films, self.user_bias, self.film_bias):
            nn.init.normal_(table.weight, std=0.1)

    def forward(self, user, film):
        product = (self.users(user) * self.films(film)).sum(1)
        return (
            self.mean + product + self.user_bias(user).squeeze(1) + self.film_bias(film).squeeze(1)
        )


r = np.random.default_rng(seed)
user, film, stars = ratings(10_000, r)
saved = json.dumps({int(f): i + 1 for i, f in enumerate(sorted(set(film.tolist())))})
vocabulary = load_vocabulary(saved)
train = DataLoader(Ratings((user[:8000], film[:8000], stars[:8000]), vocabulary), 128, shuffle=True)
val = DataLoader(Ratings((user[8000:], film[8000:], stars[8000:]), vocabulary), 500)
model = Factorisation()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.3)
for epoch in range(10):
    model.train()
    total = 0.0
    for users, films, given in train:
        loss = nn.functional.mse_loss(model(users, films), given)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(train)
    model.eval()
    with torch.no_grad():
        rmse = np.sqrt(np.mean([nn.functional.mse_loss(model(u, f), s).item() for u, f, s in val]))
    print(
        f"epoch {epoch} train mse {total:.4f} val rmse {rmse:.4f} "
        f"(stars' deviation {stars[8000:].std():.3f})"
    )
