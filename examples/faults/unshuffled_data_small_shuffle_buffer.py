"""Digits streamed from one shard per class through a shuffle buffer of 64 pictures.

A buffer mixes what it holds; a shard holds 150 pictures of one class, so most batches have one or
two classes. The net forgets each class while it learns the next: the loss is a saw-tooth, the
accuracy depends on which class came last. The twin's buffer holds all the pictures. The place is
the loader.
"""

import random

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

KIND = "unshuffled_data"
ACCEPT = ()
PLACE = ("", "loader")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
shards = {f"shard-{k:03d}.tar": list(zip(x[y == k], y[y == k], strict=False)) for k in range(10)}


class Shards(IterableDataset):
    def __init__(self, names):
        self.names = names

    def __iter__(self):
        for name in self.names:
            yield from shards[name]


class ShuffleBuffer(IterableDataset):
    def __init__(self, source, size):
        self.source, self.size = source, size

    def __iter__(self):
        held = []
        for sample in self.source:
            if len(held) < self.size:
                held.append(sample)
                continue
            place = random.randrange(self.size)
            drawn, held[place] = held[place], sample
            yield drawn
        random.shuffle(held)
        yield from held


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 12, 3, padding=1)
        self.conv2 = nn.Conv2d(12, 16, 3, stride=2, padding=1)
        self.fc = nn.Linear(16 * 16, 10)

    def forward(self, x):
        h = nn.functional.elu(self.conv2(nn.functional.elu(self.conv1(x))))
        return self.fc(h.flatten(1))


stream = ShuffleBuffer(Shards(sorted(shards)), size=len(y) if healthy else 64)
loader = DataLoader(stream, batch_size=32)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9, nesterov=True)
for epoch in range(12):
    net.train()
    for pictures, labels in loader:
        loss = nn.functional.cross_entropy(net(pictures), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        out = net(x_val)
        val_loss = nn.functional.cross_entropy(out, y_val)
        accuracy = (out.argmax(1) == y_val).float().mean()
print(f"loss {loss.item():.3f}, val loss {val_loss:.3f}, accuracy {accuracy:.3f}")
