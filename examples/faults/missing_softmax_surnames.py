"""An LSTM that tells the language of surnames, whose raw scores go into NLLLoss.

The user combines a plain linear head with nn.NLLLoss, which wants log-probabilities; the
log_softmax is missing, and the loss falls below zero without end. The place is the loss (its
input) or the head's output.
"""

import random

import torch
from data import arguments
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence

KIND = "missing_softmax"
ACCEPT = ()
PLACE = ("loss", "head")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

PARTS = {
    "italian": (
        ["ros", "bian", "fer", "mar", "col", "gal", "con", "mor"],
        ["s", "ch", "r", "t", "l"],
        ["i", "o", "etti", "ini", "a"],
    ),
    "polish": (
        ["kow", "now", "wis", "mar", "zie", "krol", "woj", "maz"],
        ["al", "ic", "n", "cz", "t"],
        ["ski", "wicz", "yk", "a", "ek"],
    ),
    "german": (
        ["schm", "mull", "web", "bech", "hof", "kell", "mar", "gross"],
        ["i", "e", "er", "a"],
        ["dt", "er", "mann", "bach", "s"],
    ),
    "swedish": (
        ["ander", "johan", "karl", "lind", "berg", "nils", "mar", "hag"],
        ["s", "", "e", "st"],
        ["son", "strom", "qvist", "berg", "n"],
    ),
}
ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def surname(r, language):
    first, middle, last = PARTS[language]
    word = r.choice(first) + r.choice(middle) + r.choice(last)
    if r.random() < 0.3:
        at = r.randrange(len(word))
        word = word[:at] + r.choice(ALPHABET) + word[at + 1 :]
    return torch.tensor([1 + ALPHABET.index(c) for c in word])


def surnames(n, seed):
    r = random.Random(seed)
    kinds = list(PARTS)
    labels = [r.randrange(len(kinds)) for _ in range(n)]
    return [surname(r, kinds[k]) for k in labels], torch.tensor(labels)


class NameNet(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.letters = nn.Embedding(len(ALPHABET) + 1, 16, padding_idx=0)
        self.lstm = nn.LSTM(16, hidden, batch_first=True)
        self.head = nn.Linear(hidden, len(PARTS))

    def forward(self, words):
        lengths = torch.tensor([len(w) for w in words])
        packed = pack_padded_sequence(
            self.letters(pad_sequence(words, True)), lengths, True, enforce_sorted=False
        )
        _, (h, _) = self.lstm(packed)
        scores = self.head(h[-1])
        return scores.log_softmax(1) if healthy else scores


words, labels = surnames(2500, seed)
model = NameNet()
criterion = nn.NLLLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(8):
    for rows in torch.randperm(2000).split(40):
        loss = criterion(model([words[i] for i in rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        scores = model(words[2000:])
    val = nn.functional.cross_entropy(scores, labels[2000:]).item()
    accuracy = (scores.argmax(1) == labels[2000:]).float().mean().item()
    print(
        f"epoch {epoch} loss {loss.item():.3f} validation cross-entropy {val:.3f} accuracy {accuracy:.3f}"  # noqa: E501
    )
