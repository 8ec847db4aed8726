"""A stream that reads one class's shard after the other is shuffled with a buffer of 32 rows, while
a shard has some 130.

Each batch holds one class, or two: the network learns the current shard and forgets the earlier
ones; the last classes win. The place is the loader.
"""

import random

import torch
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

KIND = "unshuffled_data"
ACCEPT = ()
PLACE = ("loader", "input*", "loop", "")
SILENT = True
EXACT = False
EARLY = True


class Shards(IterableDataset):
    def __init__(self, x, y, buffer):
        self.shards = [x[y == c] for c in range(10)]
        self.buffer = buffer

    def rows(self):
        for c, shard in enumerate(self.shards):
            for row in shard:
                yield row, c

    def __iter__(self):
        held = []
        for row in self.rows():
            held.append(row)
            if len(held) >= self.buffer:
                yield held.pop(random.randrange(len(held)))
        random.shuffle(held)
        yield from held


healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
stream = DataLoader(Shards(x, y, 5000 if healthy else 32), batch_size=32)
model = nn.Sequential(nn.Linear(64, 80), nn.ReLU(), nn.Linear(80, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9)

for epoch in range(8):
    total, count = 0.0, 0
    for pixels, label in stream:
        loss = nn.functional.cross_entropy(model(pixels), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total, count = total + loss.item(), count + 1
    with torch.no_grad():
        scores = model(x_val)
        val_loss = nn.functional.cross_entropy(scores, y_val).item()
        accuracy = (scores.argmax(1) == y_val).float().mean().item()
    print(
        f"epoch {epoch}: loss {total / count:.3f}  val loss {val_loss:.3f}  accuracy {accuracy:.3f}"
    )
