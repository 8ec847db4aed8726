"""Support tickets classified by an EmbeddingBag over hashed words; most rows of the table are
never touched.

It looks odd: the table has 8,192 rows for some 900 different words, the gradients are sparse, and
nine in ten rows keep their initial values. It is sound: the hashing trick wants a table that is
larger than the vocabulary by far, so that few words collide; SparseAdam updates the rows that
occur.
"""

import random
import zlib

import torch
from data import arguments
from torch import nn

ODD = (
    "Support tickets classified by an EmbeddingBag over hashed words; most rows of the table "
    "are never touched"
)
_, seed = arguments(__doc__)
BUCKETS = 8192
QUEUES = ["billing", "network", "login", "hardware", "shipping"]
r = random.Random(seed + 4)
syllables = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er")]
lexicon = list(dict.fromkeys("".join(r.choices(syllables, k=r.randint(2, 3))) for _ in range(950)))
topical = {q: r.sample(lexicon, 45) for q in QUEUES}
weights = [1 / (i + 12) for i in range(len(lexicon))]


def ticket():
    q = r.randrange(len(QUEUES))
    words = []
    for _ in range(r.randint(8, 22)):
        u = r.random()
        if u < 0.28:
            words.append(r.choice(topical[QUEUES[q]]))
        elif u < 0.36:
            words.append(r.choice(topical[r.choice(QUEUES)]))
        else:
            words += r.choices(lexicon, weights)
    return " ".join(words), q


def hash_words(text, drop=0.0):
    words = [w for w in text.split() if r.random() >= drop] or [text.split()[0]]
    return [zlib.crc32(w.encode()) % BUCKETS for w in words]


def collate(batch, drop=0.0):
    flat, offsets = [], []
    for text, _ in batch:
        offsets.append(len(flat))
        flat += hash_words(text, drop)
    return torch.tensor(flat), torch.tensor(offsets), torch.tensor([q for _, q in batch])


train, val = [ticket() for _ in range(8000)], [ticket() for _ in range(800)]


class TicketRouter(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.bag = nn.EmbeddingBag(BUCKETS, dim, mode="mean", sparse=True)
        self.classify = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, len(QUEUES)))
        nn.init.normal_(self.bag.weight, std=0.1)

    def forward(self, flat, offsets):
        return self.classify(self.bag(flat, offsets))


model = TicketRouter()
optimizers = [
    torch.optim.SparseAdam(model.bag.parameters(), lr=1e-3),
    torch.optim.AdamW(model.classify.parameters(), lr=3e-3),
]
loss_fn = nn.CrossEntropyLoss()
for epoch in range(5):
    model.train()
    r.shuffle(train)
    total = 0.0
    for i in range(0, len(train), 50):
        flat, offsets, y = collate(train[i : i + 50], drop=0.4)
        loss = loss_fn(model(flat, offsets), y)
        for o in optimizers:
            o.zero_grad()
        loss.backward()
        for o in optimizers:
            o.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        flat, offsets, y = collate(val)
        out = model(flat, offsets)
    print(
        f"epoch {epoch + 1} loss {total / (len(train) / 50):.4f} val loss {loss_fn(out, y).item():.4f} val acc {(out.argmax(1) == y).float().mean().item():.4f}"  # noqa: E501
    )
