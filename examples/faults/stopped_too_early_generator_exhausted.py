"""Tunes as rows of notes: a GRU learns to continue them. The batches come from a generator.

A generator can be gone through once. The first epoch takes all its batches, the other nine have
none, and the loop is over in no time with a loss that was still falling (silent). The place is the
loop. The twin makes the generator anew for each epoch.
"""

import math
from functools import partial

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "stopped_too_early"
ACCEPT = ()
PLACE = ("loop", "loader", "loss*", "")
SILENT = True
EXACT = False
EARLY = False

NOTES, LENGTH, EPOCHS = 24, 32, 10


def tunes(n, g):
    """Phrases over chords that follow each other; of each chord one note, up or down."""
    chords = torch.tensor([[0, 4, 7, 12], [5, 9, 12, 17], [7, 11, 14, 19], [9, 12, 16, 21]])
    follows = torch.tensor([1, 2, 0, 1])
    chord = torch.randint(0, 4, (n,), generator=g)
    at = torch.randint(0, 4, (n,), generator=g)
    up = torch.where(torch.rand(n, generator=g) < 0.5, 1, -1)
    notes = []
    for t in range(LENGTH):
        if t % 8 == 0 and t:
            chord = torch.where(torch.rand(n, generator=g) < 0.85, follows[chord], (chord + 3) % 4)
        turn = torch.rand(n, generator=g) < 0.1
        up = torch.where(turn, -up, up)
        at = (at + up) % 4
        notes.append(chords[chord, at] + (torch.rand(n, generator=g) < 0.05).long())
    return torch.stack(notes, 1)


def batches_of(data, size):
    for rows in torch.randperm(len(data)).split(size):
        yield data[rows, :-1], data[rows, 1:]


class Tune(nn.Module):
    def __init__(self, d=24, hidden=64):
        super().__init__()
        self.note = nn.Embedding(NOTES, d)
        self.gru = nn.GRU(d, hidden, batch_first=True)
        self.next = nn.Linear(hidden, NOTES)

    def forward(self, x):
        return self.next(self.gru(self.note(x))[0])


def fit(model, make, optimizer, evaluate):
    loss, steps = torch.tensor(math.nan), 0
    source = make()
    for epoch in range(EPOCHS):
        for x, y in source:
            loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
        if healthy:
            source = make()
        print(f"epoch {epoch} steps {steps} loss {loss.item():.4f} val {evaluate():.4f}")


healthy, seed = arguments(__doc__)
g = torch.Generator().manual_seed(seed)
train, val = tunes(2400, g), tunes(300, g)
model = Tune()


@torch.no_grad()
def evaluate():
    return F.cross_entropy(model(val[:, :-1]).flatten(0, 1), val[:, 1:].flatten()).item()


optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
fit(model, partial(batches_of, train, 40), optimizer, evaluate)
