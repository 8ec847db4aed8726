"""RMSprop with a rate of 0.3 on an LSTM that counts brackets.

The gates are at their ends after a few steps and the loss jumps about. The place is the optimizer.
"""

import random

import torch
from data import arguments
from torch import nn

KIND = "learning_rate_too_high"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = False
EXACT = False
EARLY = True


def brackets(length=24):
    """A string of brackets as numbers, and the largest depth, at most 7."""
    depth = deepest = 0
    ids = []
    for _ in range(length):
        up = depth == 0 or (depth < 7 and random.random() < 0.5)
        depth += 1 if up else -1
        deepest = max(deepest, depth)
        ids.append(int(up))
    return ids, deepest


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(2, 8)
        self.lstm = nn.LSTM(8, 32, batch_first=True)
        self.linear = nn.Linear(32, 8)

    def forward(self, ids):
        out, _ = self.lstm(self.embed(ids))
        return self.linear(out[:, -1])


healthy, seed = arguments(__doc__)
model = Counter()
optimizer = torch.optim.RMSprop(model.parameters(), lr=0.003 if healthy else 0.3)
criterion = nn.CrossEntropyLoss()
for step in range(300):
    ids, depth = zip(*(brackets() for _ in range(32)), strict=True)
    loss = criterion(model(torch.tensor(ids)), torch.tensor(depth))
    model.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print("step", step, "loss", loss.item())
print(f"loss {loss.item():.3f}")
