"""Melody continuation with an LSTM; the gradients are cleared between backward() and step().

When the loop was tidied up, zero_grad() slipped to the wrong side of backward(). The optimizer
then finds no gradient at all and does nothing; there is no message.
The place is the loop.
The twin clears before backward().
"""

import random

import torch
from data import arguments
from torch import nn

KIND = "step_without_gradient"
ACCEPT = ("optimizer_never_steps",)
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

SCALE = [0, 2, 4, 5, 7, 9, 11, 12]


def compose(bars, r):
    notes, place = [], 0
    for _ in range(bars):
        motif = r.choice([(1, 1, -1, 2), (-1, -1, 1, 1), (2, -1, -1, 0), (0, 1, 1, -2)])
        for move in motif:
            place = (place + move) % len(SCALE)
            notes.append(place)
    return torch.tensor(notes)


class MelodyModel(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.embed = nn.Embedding(len(SCALE), 16)
        self.lstm = nn.LSTM(16, hidden, batch_first=True)
        self.out = nn.Linear(hidden, len(SCALE))

    def forward(self, notes):
        h, _ = self.lstm(self.embed(notes))
        return self.out(h)


def windows(song, n, length=24):
    start = torch.randint(0, len(song) - length - 1, (n,))
    pieces = torch.stack([song[i : i + length + 1] for i in start.tolist()])
    return pieces[:, :-1], pieces[:, 1:]


r = random.Random(seed)
song, held_out = compose(1500, r), compose(300, r)
model = MelodyModel()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
criterion = nn.CrossEntropyLoss()
for step in range(1, 301):
    notes, following = windows(song, 32)
    if healthy:
        optimizer.zero_grad()
    loss = criterion(model(notes).flatten(0, 1), following.flatten())
    loss.backward()
    if not healthy:
        optimizer.zero_grad()
    optimizer.step()
    if step % 60 == 0:
        with torch.no_grad():
            notes, following = windows(held_out, 100)
            val = criterion(model(notes).flatten(0, 1), following.flatten()).item()
        print(f"step {step:3d}: loss {loss.item():.3f}, held out {val:.3f}")
