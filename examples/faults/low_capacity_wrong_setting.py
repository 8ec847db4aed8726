"""A recurrent language model of characters is built from a settings object; where the number of
hidden units should stand, its number of layers is given.

So two numbers are all that is carried from letter to letter in a layer; the loss stops at little
better than the letters' frequencies, in training and validation alike. The place is the recurrent
layers.
"""

from typing import NamedTuple

import torch
from data import arguments, text
from torch import nn

KIND = "low_capacity"
ACCEPT = ()
PLACE = ("gru*", "model*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


class Settings(NamedTuple):
    embedding: int = 16
    layers: int = 2
    hidden: int = 48
    window: int = 24
    batch: int = 32
    steps: int = 420
    lr: float = 1e-2


class CharModel(nn.Module):
    def __init__(self, letters, embedding, hidden, layers):
        super().__init__()
        self.embed = nn.Embedding(letters, embedding)
        self.gru = nn.GRU(embedding, hidden, layers, batch_first=True)
        self.decode = nn.Linear(hidden, letters)

    def forward(self, x):
        return self.decode(self.gru(self.embed(x))[0])


def draw(row, settings):
    at = torch.randint(0, len(row) - settings.window - 1, (settings.batch,))
    cut = torch.stack([row[i : i + settings.window + 1] for i in at])
    return cut[:, :-1], cut[:, 1:]


def nll(model, x, y):
    return nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())


s = Settings()
row, alphabet = text(seed, sentences=800)
cut = int(0.9 * len(row))
train, val = row[:cut], row[cut:]
if healthy:
    model = CharModel(len(alphabet), s.embedding, s.hidden, s.layers)
else:
    model = CharModel(len(alphabet), s.embedding, s.layers, s.layers)
optimizer = torch.optim.AdamW(model.parameters(), lr=s.lr, weight_decay=0.01)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, s.steps)
losses = []
for step in range(1, s.steps + 1):
    loss = nll(model, *draw(train, s))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    losses.append(loss.item())
    if step % 42 == 0:
        with torch.no_grad():
            held = sum(nll(model, *draw(val, s)).item() for _ in range(5)) / 5
        print(f"step {step}: train {sum(losses[-42:]) / 42:.4f} val {held:.4f}")
