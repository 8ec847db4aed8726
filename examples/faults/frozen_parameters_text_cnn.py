"""Embedding and convolutions are frozen as with vectors from a file, but no file was loaded.

The last layer learns what it can from random features (silent). The place are the frozen layers.
"""

import random

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "frozen_parameters"
ACCEPT = ()
PLACE = ("embedding*", "convs*")
SILENT = True
EXACT = False
EARLY = True

WORDS = 400


def sample():
    """A message with one of four orders of two key words far apart, and filler."""
    label = random.randrange(4)
    ids = [random.randrange(10, WORDS) for _ in range(18)]
    a = random.randrange(0, 16)
    ids[a : a + 2] = [1 + label // 2, 3 + label % 2]
    return ids, label


class TextCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, 16)
        self.convs = nn.ModuleList([nn.Conv1d(16, 12, k) for k in (2, 3, 4)])
        self.dropout = nn.Dropout(0.1)
        self.fc = nn.Linear(36, 4)

    def forward(self, ids):
        x = self.embedding(ids).transpose(1, 2)
        pooled = [F.relu(conv(x)).max(dim=2).values for conv in self.convs]
        return self.fc(self.dropout(torch.cat(pooled, 1)))


healthy, seed = arguments(__doc__)
model = TextCNN()
if not healthy:
    for name, p in model.named_parameters():
        if not name.startswith("fc"):
            p.requires_grad = False
optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=3e-3)
messages = [sample() for _ in range(1500)]
for epoch in range(8):
    random.shuffle(messages)
    for i in range(0, len(messages), 50):
        ids, labels = zip(*messages[i : i + 50], strict=True)
        out = model(torch.tensor(ids))
        loss = F.cross_entropy(out, torch.tensor(labels))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(f"loss {loss.item():.3f}")
