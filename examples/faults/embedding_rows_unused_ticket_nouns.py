"""Routes German support tickets to five desks; all nouns are looked up in a spelling not listed.

The vocabulary was collected from the tickets as they are, with capital nouns. The reader lowers
the words before it looks them up, so every noun, which tells most, becomes the unknown word and
its row of the embedding is never used. The place is the embedding table.
The twin looks words up in the spelling in which they were listed.
"""

import random
from collections import Counter

import torch
from data import arguments
from torch import nn

KIND = "embedding_rows_unused"
ACCEPT = ("train_val_mismatch",)
PLACE = ("embedding", "input*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

NOUNS = {
    "druck": ["Drucker", "Toner", "Papier", "Fach", "Ausdruck", "Patrone"],
    "netz": ["Router", "Kabel", "Netz", "Verbindung", "Anschluss", "Signal"],
    "konto": ["Passwort", "Konto", "Anmeldung", "Kennung", "Sperre", "Benutzer"],
    "rechnung": ["Rechnung", "Betrag", "Mahnung", "Zahlung", "Steuer", "Beleg"],
    "versand": ["Paket", "Lieferung", "Spedition", "Adresse", "Karton", "Versand"],
}
SHARED = [
    "Problem",
    "Kunde",
    "Kollege",
    "Montag",
    "Fehler",
    "Hilfe",
    "Frage",
    "Termin",
    "Anruf",
    "Woche",
]
SMALL = [
    "der",
    "die",
    "das",
    "ist",
    "nicht",
    "seit",
    "gestern",
    "wieder",
    "bitte",
    "schnell",
    "kaputt",
    "leer",
    "weg",
    "falsch",
    "und",
]
DESKS = list(NOUNS)
HINTS = dict(zip(DESKS, ("leer", "weg", "nicht", "falsch", "kaputt"), strict=True))


def ticket(rng):
    desk = rng.choice(DESKS)
    words = rng.choices(SMALL, k=rng.randint(4, 9)) + rng.choices(SHARED, k=rng.randint(1, 4))
    words += rng.choices(NOUNS[desk], k=rng.randint(1, 3))
    if rng.random() < 0.4:
        words += rng.choices(NOUNS[rng.choice(DESKS)], k=1)
    words += [HINTS[desk]] * (rng.random() < 0.6)
    rng.shuffle(words)
    return " ".join(words), DESKS.index(desk)


class Vocabulary:
    def __init__(self, texts):
        counts = Counter(word for text in texts for word in text.split())
        self.words = ["<unk>", *sorted(counts)]
        self.index = {word: i for i, word in enumerate(self.words)}

    def encode(self, text):
        if not healthy:
            text = text.lower()
        return [self.index.get(word, 0) for word in text.split()]


class Router(nn.Module):
    def __init__(self, words, desks, width=24):
        super().__init__()
        self.embedding = nn.EmbeddingBag(words, width, mode="mean")
        self.mlp = nn.Sequential(nn.Linear(width, 32), nn.ReLU(), nn.Linear(32, desks))

    def forward(self, flat, offsets):
        return self.mlp(self.embedding(flat, offsets))


def pack(rows):
    lengths = torch.tensor([0] + [len(ids) for ids, _ in rows[:-1]])
    flat = torch.tensor([i for ids, _ in rows for i in ids])
    return flat, lengths.cumsum(0), torch.tensor([desk for _, desk in rows])


rng = random.Random(seed)
tickets = [ticket(rng) for _ in range(2500)]
vocabulary = Vocabulary([text for text, _ in tickets])
encoded = [(vocabulary.encode(text), desk) for text, desk in tickets]
train, valid = encoded[:2000], encoded[2000:]
model = Router(len(vocabulary.words), len(DESKS))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
print(f"{len(vocabulary.words)} words")
for epoch in range(10):
    rng.shuffle(train)
    total = 0.0
    for at in range(0, len(train), 64):
        flat, offsets, desk = pack(train[at : at + 64])
        loss = nn.functional.cross_entropy(model(flat, offsets), desk)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(desk)
    with torch.no_grad():
        flat, offsets, desk = pack(valid)
        hits = (model(flat, offsets).argmax(1) == desk).float().mean()
    print(f"epoch {epoch} loss {total / len(train):.3f} routed rightly {hits:.3f}")
