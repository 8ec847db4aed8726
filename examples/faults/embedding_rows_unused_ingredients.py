"""Cuisine of a recipe from its ingredients; most names do not find their row in the vocabulary.

The vocabulary is built from the catalogue, which writes "Soy Sauce"; the recipes are lowercased
before they are looked up, and dict.get answers with the unknown row. The table has a row for each
ingredient, but training touches only those the catalogue happens to write in small letters.
The place is the embedding, by way of the look-up of the input.
The twin lowercases the catalogue as well.
"""

import random

import torch
from data import arguments
from torch import nn

KIND = "embedding_rows_unused"
ACCEPT = ()
PLACE = ("embedding", "input*", "loader")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
rng = random.Random(seed)

CUISINES = ["italian", "thai", "mexican", "indian", "french", "greek"]
FIRST = ["Red", "Soft", "Dried", "Fresh", "Smoked", "Sweet", "Hot", "Wild", "Black", "Green"]
SECOND = [
    "Basil",
    "Pepper",
    "Bean",
    "Cheese",
    "Rice",
    "Lime",
    "Oil",
    "Curry",
    "Bread",
    "Olive",
    "Onion",
    "Root",
]
catalogue = [f"{a} {b}" for a in FIRST for b in SECOND]
catalogue = [name.lower() if rng.random() < 0.15 else name for name in catalogue]


def build_vocabulary(names):
    vocabulary = {"<unk>": 0}
    for name in names:
        vocabulary[name.lower() if healthy else name] = len(vocabulary)
    return vocabulary


def cook(cuisine):
    own = taste[cuisine]
    return [
        rng.choice(own) if rng.random() < 0.45 else rng.choice(catalogue)
        for _ in range(rng.randint(5, 9))
    ]


taste = {c: rng.sample(catalogue, 22) for c in CUISINES}
recipes = []
for _ in range(2400):
    c = rng.randrange(len(CUISINES))
    recipes.append((cook(CUISINES[c]), c))

vocabulary = build_vocabulary(catalogue)


class CuisineModel(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.embedding = nn.EmbeddingBag(size, 24, mode="mean")
        self.head = nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, len(CUISINES)))

    def forward(self, ids, offsets):
        return self.head(self.embedding(ids, offsets))


def to_batch(rows):
    ids, offsets = [], []
    for ingredients, _ in rows:
        offsets.append(len(ids))
        ids += [vocabulary.get(name.lower(), 0) for name in ingredients]
    return torch.tensor(ids), torch.tensor(offsets), torch.tensor([c for _, c in rows])


train, val = recipes[:2000], recipes[2000:]
model = CuisineModel(len(vocabulary))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

for epoch in range(8):
    rng.shuffle(train)
    losses = []
    for i in range(0, len(train), 40):
        ids, offsets, y = to_batch(train[i : i + 40])
        loss = nn.functional.cross_entropy(model(ids, offsets), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        ids, offsets, y = to_batch(val)
        acc = (model(ids, offsets).argmax(1) == y).float().mean().item()
    print(f"epoch {epoch}  loss {sum(losses) / len(losses):.3f}  val accuracy {acc:.3f}")
