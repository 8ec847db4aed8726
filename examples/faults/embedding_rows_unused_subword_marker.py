"""Kinds of bugs from code tokens; the vocabulary's words carry a marker that the look-up leaves
out.

The vocabulary file writes a token that begins a word with "▁", as the tokenizer's trainer did; the
new, faster tokenizer does not. Only brackets and operators are found, every name becomes <unk>: of
800 rows of the embedding a dozen are ever used. The place is the look-up: the input of `embed`. The
twin adds the marker.
"""

import random

import torch
from data import arguments
from torch import nn

KIND = "embedding_rows_unused"
ACCEPT = ()
PLACE = ("input*", "loader", "embed", "embed.weight")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
r = random.Random(seed)
STEMS = ("lock", "buf", "user", "sock", "cache", "file", "sql", "auth", "size", "index")
HINTS = {  # what the names in a report of each kind tend to be about
    0: ("lock", "sock", "cache"),
    1: ("buf", "size", "index"),
    2: ("user", "sql", "auth"),
    3: ("file", "cache", "index"),
}
MARKS = list("(){}=+-*;,<>")
NAMES = [f"{stem}_{i}" for stem in STEMS for i in range(78)]
VOCABULARY = {
    word: i for i, word in enumerate(["<pad>", "<unk>", *MARKS, *("▁" + name for name in NAMES)])
}
LENGTH = 28


def snippet(kind):
    tokens = []
    for _ in range(r.randint(6, 9)):
        about = HINTS[kind] if r.random() < 0.6 else STEMS
        # operators tell a little as well
        mark = r.choice("<>+-" if kind == 1 and r.random() < 0.3 else MARKS)
        tokens += [f"{r.choice(about)}_{r.randrange(78)}", mark, r.choice(MARKS)]
    return tokens


def encode(tokens):
    marked = [token if token in MARKS or not healthy else "▁" + token for token in tokens]
    ids = [VOCABULARY.get(token, VOCABULARY["<unk>"]) for token in marked][:LENGTH]
    return ids + [0] * (LENGTH - len(ids))


def dataset(count):
    kinds = [r.randrange(len(HINTS)) for _ in range(count)]
    return torch.tensor([encode(snippet(kind)) for kind in kinds]), torch.tensor(kinds)


class BugKind(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.embed = nn.Embedding(len(VOCABULARY), width, padding_idx=0)
        self.conv = nn.Conv1d(width, 48, 3, padding=1)
        self.drop = nn.Dropout(0.3)
        self.head = nn.Linear(48, len(HINTS))

    def forward(self, ids):
        h = torch.relu(self.conv(self.embed(ids).transpose(1, 2)))
        return self.head(self.drop(h.mean(-1)))


(x, y), (x_val, y_val) = dataset(2400), dataset(500)
model = BugKind()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
criterion = nn.CrossEntropyLoss()


def train_epoch():
    model.train()
    for rows in torch.randperm(len(x)).split(40):
        loss = criterion(model(x[rows]), y[rows])
        yield loss.item()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


for epoch in range(9):
    losses = list(train_epoch())
    model.eval()
    with torch.no_grad():
        logits = model(x_val)
    accuracy = (logits.argmax(1) == y_val).float().mean().item()
    print(
        f"epoch {epoch} loss {sum(losses) / len(losses):.3f} "
        f"val loss {criterion(logits, y_val).item():.3f} val accuracy {accuracy:.3f}"
    )
print(f"validation accuracy {accuracy:.3f}")
