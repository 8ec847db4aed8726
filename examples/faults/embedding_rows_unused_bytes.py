"""A recommender keeps its columns small: the item numbers, up to 5,999, are stored as bytes.

They wrap around at 256, so items share rows and 5,744 of 6,000 rows are never looked up. The twin
stores 16 bits. The place is the items' embedding (the input).
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "embedding_rows_unused"
ACCEPT = ()
PLACE = ("items", "items.weight", "item_bias", "item_bias.weight", "input", "loader")
SILENT = True
EXACT = True
EARLY = False

USERS, ITEMS, RATINGS = 400, 6000, 90_000


def load_ratings(seed, dtype):
    r = np.random.default_rng(seed)
    quality, taste = r.normal(0, 1, ITEMS), r.normal(0, 1, USERS)
    genre, likes = r.integers(0, 6, ITEMS), r.normal(0, 0.8, (USERS, 6))
    users, items = r.integers(0, USERS, RATINGS), r.integers(0, ITEMS, RATINGS)
    stars = quality[items] + 0.5 * taste[users] + likes[users, genre[items]] * 0.5
    stars = stars + r.normal(0, 0.5, RATINGS)
    stars = (stars - stars.mean()) / stars.std()
    return users.astype(np.int16), items.astype(dtype), stars.astype(np.float32)


class Factors(nn.Module):
    def __init__(self, dim=6):
        super().__init__()
        self.users, self.items = nn.Embedding(USERS, dim), nn.Embedding(ITEMS, dim)
        self.user_bias, self.item_bias = nn.Embedding(USERS, 1), nn.Embedding(ITEMS, 1)
        for table in (self.users, self.items, self.user_bias, self.item_bias):
            nn.init.normal_(table.weight, std=0.1)

    def forward(self, u, i):
        return (
            (self.users(u) * self.items(i)).sum(-1)
            + self.user_bias(u).squeeze(-1)
            + self.item_bias(i).squeeze(-1)
        )


healthy, seed = arguments(__doc__)
users, items, stars = load_ratings(seed, np.int16 if healthy else np.uint8)
users, items = torch.from_numpy(users).int(), torch.from_numpy(items).int()
stars = torch.from_numpy(stars)
order = torch.randperm(RATINGS)
train, held = order[:80_000], order[80_000:]

model = Factors()
opt = torch.optim.Adam(model.parameters(), lr=6e-3)
mse = nn.MSELoss()
for epoch in range(3):
    shuffled = train[torch.randperm(len(train))]
    running = []
    for rows in shuffled.split(500):
        loss = mse(model(users[rows], items[rows]), stars[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
        running.append(loss.item())
    with torch.no_grad():
        val = mse(model(users[held], items[held]), stars[held]).item()
    print(f"epoch {epoch + 1}: train {np.mean(running):.3f}, held out {val:.3f}")
