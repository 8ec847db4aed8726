"""A character model with its own loader: a row of batches that is cut by the step's number.

Fault: `step // batches` (the number of the epoch) where `step % batches` was meant: the same batch
for as long as an epoch. The place is the loader. The loss falls to nothing; the validation loss
rises. Exact.
"""

import torch
from data import arguments, text
from torch import nn
from torch.nn import functional as F

KIND = "repeated_batch"
ACCEPT = ("overfit",)
PLACE = ("loader", "input*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
ids, alphabet = text(seed)
LENGTH, SIZE = 32, 4


class Loader:
    def __init__(self, ids):
        n = (len(ids) - 1) // (LENGTH * SIZE) * LENGTH * SIZE
        order = torch.randperm(n // LENGTH)
        self.x = ids[:n].view(-1, LENGTH)[order]
        self.y = ids[1 : n + 1].view(-1, LENGTH)[order]
        self.batches = len(self.x) // SIZE

    def get(self, step):
        i = step % self.batches if healthy else step // self.batches
        return self.x[i * SIZE : (i + 1) * SIZE], self.y[i * SIZE : (i + 1) * SIZE]


class Model(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, 24)
        self.rnn = nn.LSTM(24, 64, batch_first=True)
        self.out = nn.Linear(64, vocabulary)

    def forward(self, x):
        return self.out(self.rnn(self.embed(x))[0])


cut = len(ids) * 9 // 10
loader = Loader(ids[:cut])
val = ids[cut : cut + 40 * LENGTH + 1]
x_val, y_val = val[:-1].view(-1, LENGTH), val[1:].view(-1, LENGTH)
model = Model(len(alphabet))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(280):
    x, y = loader.get(step)
    loss = F.cross_entropy(model(x).transpose(1, 2), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 40 == 39:
        with torch.no_grad():
            v = F.cross_entropy(model(x_val).transpose(1, 2), y_val).item()
        print(f"step {step + 1}: loss {loss.item():.4f}, validation loss {v:.4f}")
print(f"loss {loss.item():.4f} | validation loss {v:.4f}")
