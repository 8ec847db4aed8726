"""Support mails are sorted into five desks by a bag of word embeddings; the training's text is
lower-cased and stripped of punctuation, the validation's is not.

The vocabulary is built from the cleaned training text, and "Refund," is not "refund": most words of
the validation become unknown. The place is the input of the validation, where `clean` is missing.
"""

import random
import re

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "train_val_mismatch"
ACCEPT = ()
PLACE = ("input", "loader", "loop")
SILENT = False
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

DESKS = {
    "billing": "refund invoice charged payment card twice receipt amount",
    "shipping": "parcel courier arrived late address tracking box delivery",
    "account": "password login locked email username reset profile code",
    "product": "broken screen battery button manual warranty part noise",
    "sales": "discount quote bulk offer price upgrade contract demo",
}
TALK = "hello i please my the since monday again would like thanks help about with still order"


def mail(desk):
    words = random.choices(TALK.split(), k=random.randint(5, 10))
    for _ in range(random.randint(2, 4)):
        source = desk if random.random() < 0.85 else random.choice(list(DESKS))
        words.insert(random.randrange(len(words)), random.choice(DESKS[source].split()))
    shown = []
    for word in words:
        style = random.random()
        written = word.upper() if style < 0.3 else word.capitalize() if style < 0.65 else word
        shown.append(written + random.choice(["", "", ",", ".", "!", "..."]))
    return " ".join(shown)


def clean(text):
    return re.sub(r"[^\w\s]", "", text.lower())


def encode(texts, number, length=14):
    rows = [[number.get(word, 1) for word in text.split()][:length] for text in texts]
    return torch.tensor([row + [0] * (length - len(row)) for row in rows])


class BagOfWords(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.bag = nn.EmbeddingBag(words, 24, padding_idx=0)
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(24, len(DESKS)))

    def forward(self, rows):
        return self.head(self.bag(rows))


def main():
    names = list(DESKS)
    desk = torch.randint(0, len(names), (2400,))
    mails = [mail(names[d]) for d in desk.tolist()]
    train_text = [clean(text) for text in mails[:1800]]
    val_text = [clean(text) for text in mails[1800:]] if healthy else mails[1800:]
    words = sorted({word for text in train_text for word in text.split()})
    number = {word: i + 2 for i, word in enumerate(words)}
    train, val = encode(train_text, number), encode(val_text, number)
    model = BagOfWords(len(number) + 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(8):
        model.train()
        right = 0.0
        for rows in torch.randperm(1800).split(60):
            score = model(train[rows])
            loss = F.cross_entropy(score, desk[rows], label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right += (score.argmax(1) == desk[rows]).sum().item() / 1800
        model.eval()
        with torch.no_grad():
            score = model(val)
        val_loss = F.cross_entropy(score, desk[1800:])
        val_right = (score.argmax(1) == desk[1800:]).float().mean()
        print(f"epoch {epoch} loss {loss.item():.3f} accuracy {right:.3f} "
              f"validation {val_loss:.3f} accuracy {val_right:.3f}")  # fmt: skip


main()
