"""Rewrites written dates in figures with an encoder and a decoder; Adam was given the decoder only.

One model became two modules, encoder and decoder, each with its own file. The line that makes the
optimizer says `decoder.parameters()`, so the encoder reads with the weights it was born with.
The place is the optimizer and the encoder. The twin chains the parameters of both.
"""

import itertools
import random

import torch
from data import arguments
from torch import nn

KIND = "parameters_not_in_optimizer"
ACCEPT = ("frozen_parameters",)
PLACE = ("optimizer", "encoder", "encoder*", "encoder.gru", "encoder.embed", "gru", "embed")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
MONTHS = "january february march april may june july august september october november december"
LETTERS = " abcdefghijklmnopqrstuvwxyz0123456789,./"
WIDTH, DIGITS = 22, 8


def written(r):
    day, month, year = r.randint(1, 28), r.randint(1, 12), r.randint(1960, 2029)
    name = MONTHS.split()[month - 1]
    text = r.choice([f"{day} {name} {year}", f"{name} {day}, {year}", f"{day}. {name[:3]} {year}"])
    ids = [LETTERS.index(c) for c in text.ljust(WIDTH)]
    return ids, [int(c) for c in f"{year}{month:02d}{day:02d}"]


class Encoder(nn.Module):
    def __init__(self, dim=32, hidden=48):
        super().__init__()
        self.embed = nn.Embedding(len(LETTERS), dim)
        self.gru = nn.GRU(dim, hidden, batch_first=True, bidirectional=True)

    def forward(self, x):
        return self.gru(self.embed(x))[0]


class Decoder(nn.Module):
    """One query for each digit looks over what the encoder read."""

    def __init__(self, memory=96, dim=48):
        super().__init__()
        self.query = nn.Parameter(0.1 * torch.randn(DIGITS, dim))
        self.key, self.value = nn.Linear(memory, dim), nn.Linear(memory, dim)
        self.out = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, memory):
        scores = self.query @ self.key(memory).transpose(1, 2) / 48**0.5
        return self.out(scores.softmax(-1) @ self.value(memory) + self.query)


r = random.Random(seed)
x, y = (torch.tensor(part) for part in zip(*(written(r) for _ in range(2400)), strict=False))
x_val, y_val, x, y = x[2000:], y[2000:], x[:2000], y[:2000]
encoder, decoder = Encoder(), Decoder()
if healthy:
    weights = itertools.chain(encoder.parameters(), decoder.parameters())
else:
    weights = decoder.parameters()
optimizer = torch.optim.Adam(weights, lr=4e-3)
for epoch in range(5):
    losses = []
    for rows in torch.randperm(len(x)).split(50):
        out = decoder(encoder(x[rows]))
        loss = nn.functional.cross_entropy(out.flatten(0, 1), y[rows].flatten())
        encoder.zero_grad()
        decoder.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        digits = (decoder(encoder(x_val)).argmax(-1) == y_val).float()
    whole = digits.min(1).values.mean()
    print(f"{epoch} {sum(losses) / len(losses):.3f} digits {digits.mean():.3f} dates {whole:.3f}")
