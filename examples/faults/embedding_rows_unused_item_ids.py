"""A recommender looks its items up in a dictionary with keys of another type and gets row 0 for all
of them.

The index of the items was built from a file with the ids as strings, the ratings have them as
integers, and `get(id, 0)` hides it: of 300 item rows one is trained. The loss still falls because
of the users, but what an item is like is not learned. The twin turns the id into a string. The
place is `item_factors`, `item_bias`, `item_factors.weight`, `item_bias.weight` or the input.
"""

import random

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "embedding_rows_unused"
ACCEPT = ()
PLACE = ("item_factors", "item_bias", "item_factors.weight", "item_bias.weight", "input*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
USERS, ITEMS, RATINGS = 200, 300, 12_000

catalogue = random.sample(range(100_000, 999_999), ITEMS)
user_taste, item_taste = torch.randn(USERS, 3), torch.randn(ITEMS, 3)
user_mood, item_fame = 0.4 * torch.randn(USERS), 0.5 * torch.randn(ITEMS)
u, i = torch.randint(0, USERS, (RATINGS,)), torch.randint(0, ITEMS, (RATINGS,))
rating = (
    0.3 * (user_taste[u] * item_taste[i]).sum(1)
    + user_mood[u]
    + item_fame[i]
    + 0.25 * torch.randn(RATINGS)
)
rows = [(int(a), catalogue[int(b)], float(c)) for a, b, c in zip(u, i, rating, strict=True)]

item_index = {str(item): row for row, item in enumerate(sorted(catalogue))}


def encode(user, item):
    return user, item_index.get(str(item) if healthy else item, 0)


ids = torch.tensor([encode(user, item) for user, item, _ in rows])
stars = torch.tensor([value for _, _, value in rows])
stars = (stars - stars[:9600].mean()) / stars[:9600].std()
train_set = TensorDataset(ids[:9600], stars[:9600])
ids_val, stars_val = ids[9600:], stars[9600:]


class Factors(nn.Module):
    def __init__(self, width=6):
        super().__init__()
        self.user_factors = nn.Embedding(USERS, width)
        self.item_factors = nn.Embedding(ITEMS, width)
        self.user_bias = nn.Embedding(USERS, 1)
        self.item_bias = nn.Embedding(ITEMS, 1)
        for table in (self.user_factors, self.item_factors, self.user_bias, self.item_bias):
            nn.init.normal_(table.weight, std=0.1)

    def forward(self, ids):
        user, item = ids[:, 0], ids[:, 1]
        dot = (self.user_factors(user) * self.item_factors(item)).sum(1)
        return dot + self.user_bias(user).squeeze(1) + self.item_bias(item).squeeze(1)


model = Factors()
loader = DataLoader(train_set, batch_size=128, shuffle=True)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=2e-4)
for epoch in range(1, 13):
    model.train()
    total = 0.0
    for batch, target in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(batch), target)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(target)
    model.eval()
    with torch.no_grad():
        val = nn.functional.mse_loss(model(ids_val), stars_val).item()
    if epoch % 2 == 0:
        print(f"epoch {epoch} train mse {total / len(train_set):.4f} val mse {val:.4f}")
print("item rows in training:", len(ids[:9600, 1].unique()), "of", ITEMS)
