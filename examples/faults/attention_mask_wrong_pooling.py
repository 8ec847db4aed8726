"""Attention pooling written by hand hides the tokens that are there instead of the padding.

masked_fill fills where the mask is True, and it is True for words. The place is the pooling.
"""

import random

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "attention_mask_wrong"
ACCEPT = ()
PLACE = ("pool*", "")
SILENT = False
EXACT = True
EARLY = True


class AttentionPooling(nn.Module):
    def __init__(self, dim, inverted):
        super().__init__()
        self.score = nn.Linear(dim, 1)
        self.inverted = inverted

    def forward(self, h, mask):
        scores = self.score(h).squeeze(-1)
        scores = scores.masked_fill(mask if self.inverted else ~mask, -1e9)
        weights = torch.softmax(scores, dim=1)
        return (weights.unsqueeze(-1) * h).sum(1)


class BagOfNotes(nn.Module):
    """Which of six composers wrote these notes?"""

    def __init__(self, notes, classes, inverted):
        super().__init__()
        self.embed = nn.Embedding(notes, 24)
        self.mix = nn.Linear(24, 24)
        self.pool = AttentionPooling(24, inverted)
        self.out = nn.Linear(24, classes)

    def forward(self, ids):
        h = torch.tanh(self.mix(self.embed(ids)))
        return self.out(self.pool(h, ids != 0))


def make_batch(size):
    rows, labels = [], []
    for _ in range(size):
        composer = random.randrange(6)
        n = random.randint(5, 18)
        notes = [1 + (composer * 7 + random.randrange(14)) % 42 for _ in range(n)]
        rows.append(notes + [0] * (20 - n))
        labels.append(composer)
    return torch.tensor(rows), torch.tensor(labels)


healthy, seed = arguments(__doc__)
net = BagOfNotes(43, 6, inverted=not healthy)
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for it in range(300):
    ids, composer = make_batch(32)
    loss = F.cross_entropy(net(ids), composer)
    opt.zero_grad()
    loss.backward()
    opt.step()
print("final loss", round(loss.item(), 3))
