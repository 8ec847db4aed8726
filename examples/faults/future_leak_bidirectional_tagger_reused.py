"""A language model of characters with the GRU of the team's tagger, which read both ways.

Fault: `bidirectional=True` stayed; the backward half has read the character that is to be
foretold. The place is the GRU. Loss and validation loss in one pass fall to nearly nothing; with
only the past at hand, as when it writes, the model fails. Exact: a later character changes an
earlier output.
"""

import torch
from data import arguments, text
from torch import nn
from torch.nn import functional as F

KIND = "future_leak"
ACCEPT = ("target_leak",)
PLACE = ("gru", "")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
ids, alphabet = text(seed)
cut = int(len(ids) * 0.9)
train, val = ids[:cut], ids[cut:]
LENGTH = 40


class CharModel(nn.Module):
    def __init__(self, vocabulary, width=32, bidirectional=True):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.gru = nn.GRU(width, 64, batch_first=True, bidirectional=bidirectional)
        self.out = nn.Linear(128 if bidirectional else 64, vocabulary)

    def forward(self, ids):
        return self.out(self.gru(self.embed(ids))[0])


def windows(source, n):
    start = torch.randint(0, len(source) - LENGTH - 1, (n,))
    rows = source[start[:, None] + torch.arange(LENGTH + 1)]
    return rows[:, :-1], rows[:, 1:]


def loss_of(model, x, y):
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten())


model = CharModel(len(alphabet), bidirectional=not healthy)
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
for step in range(180):
    loss = loss_of(model, *windows(train, 16))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 60 == 59:
        model.eval()
        with torch.no_grad():
            print(f"step {step + 1}: loss {loss:.3f}, val {loss_of(model, *windows(val, 64)):.3f}")
        model.train()

model.eval()
with torch.no_grad():  # as it is used: nothing to the right is known yet
    x, y = windows(val, 400)
    written = F.cross_entropy(model(x)[:, -1], y[:, -1])
print(f"loss {loss.item():.4f} | validation loss of the next character {written:.3f}")
