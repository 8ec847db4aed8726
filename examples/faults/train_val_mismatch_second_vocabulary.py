"""The validation reviews are numbered by a vocabulary built anew from themselves.

A word's number is its rank by frequency, and the ranks differ: validation reads as other words.
Training falls as it should, validation is at chance from the first epoch on and its loss grows.
The place is the (validation) loader.
"""

from collections import Counter

import torch
from data import arguments, reviews
from torch import nn

KIND = "train_val_mismatch"
ACCEPT = ()
PLACE = ("", "loader", "embed*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
numbers, labels, _ = reviews(seed, n=1600)
documents = [[f"word{i}" for i in row.tolist() if i] for row in numbers]
train_docs, val_docs = documents[:1200], documents[1200:]
y, y_val = labels[:1200], labels[1200:]


def build_vocabulary(docs):
    ranked = Counter(word for doc in docs for word in doc).most_common()
    return {word: i + 2 for i, (word, _) in enumerate(ranked)}


def encode(docs, vocabulary=None, length=16):
    """0 is padding, 1 a word that is not known."""
    vocabulary = vocabulary or build_vocabulary(docs)
    rows = torch.zeros(len(docs), length, dtype=torch.int64)
    for row, doc in zip(rows, docs, strict=True):
        row[: len(doc)] = torch.tensor([vocabulary.get(word, 1) for word in doc])
    return rows, vocabulary


x, vocabulary = encode(train_docs)
x_val, _ = encode(val_docs, vocabulary if healthy else None)


class Bag(nn.Module):
    def __init__(self, words, width=24):
        super().__init__()
        self.embed = nn.Embedding(words, width, padding_idx=0)
        self.gate = nn.Linear(width, 1)
        self.out = nn.Linear(width, 1)

    def forward(self, rows):
        e = self.embed(rows)
        weight = self.gate(e).squeeze(-1).masked_fill(rows == 0, -1e9).softmax(-1)
        return self.out((weight.unsqueeze(-1) * e).sum(1)).squeeze(-1)


model = Bag(len(vocabulary) + 2)
optimizer = torch.optim.Adam(model.parameters(), lr=0.004)
bce = nn.BCEWithLogitsLoss()
for epoch in range(8):
    model.train()
    for pick in torch.randperm(1200).split(40):
        optimizer.zero_grad()
        loss = bce(model(x[pick]), y[pick].float())
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        out = torch.cat([model(part) for part in x_val.split(100)])
        val = bce(out, y_val.float()).item()
print(
    f"loss {loss.item():.3f}, validation loss {val:.3f}, "
    f"accuracy {((out > 0) == y_val).float().mean():.3f}"
)
