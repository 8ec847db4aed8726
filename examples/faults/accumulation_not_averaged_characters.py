"""A character model with SGD; for want of memory the batch of 64 became eight micro-batches of 8.

The rate was tuned with batches of 64 and their mean loss. The accumulation that replaced them adds
up the eight means: each step is eight times as long as the rate says. The place is the loop. The
twin divides the loss by the number of micro-batches.
"""

import math

import torch
from data import arguments, text
from torch import nn

KIND = "accumulation_not_averaged"
ACCEPT = ()
PLACE = ("loop",)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

CONTEXT, MICRO, ACCUMULATE, STEPS = 24, 8, 8, 180


class CharModel(nn.Module):
    def __init__(self, n, width=64):
        super().__init__()
        self.embed = nn.Embedding(n, 24)
        self.rnn = nn.GRU(24, width, batch_first=True)
        self.out = nn.Linear(width, n)

    def forward(self, x):
        hidden, _ = self.rnn(self.embed(x))
        return self.out(hidden)


def sample_batch(stream, size):
    starts = torch.randint(0, len(stream) - CONTEXT - 1, (size,)).tolist()
    chunk = torch.stack([stream[s : s + CONTEXT + 1] for s in starts])
    return chunk[:, :-1], chunk[:, 1:]


def cross_entropy(model, x, y):
    return nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())


@torch.no_grad()
def bits_per_character(model, stream):
    model.eval()
    n = (len(stream) - 1) // CONTEXT
    x = stream[: n * CONTEXT].view(n, CONTEXT)
    y = stream[1 : n * CONTEXT + 1].view(n, CONTEXT)
    return cross_entropy(model, x, y).item() / math.log(2)


stream, alphabet = text(seed, sentences=1200)
cut = int(len(stream) * 0.9)
train, val = stream[:cut], stream[cut:]
model = CharModel(len(alphabet))
optimizer = torch.optim.SGD(model.parameters(), lr=0.6, momentum=0.9)

for step in range(STEPS):
    model.train()
    optimizer.zero_grad()
    running = 0.0
    for _ in range(ACCUMULATE):
        loss = cross_entropy(model, *sample_batch(train, MICRO))
        running += loss.item() / ACCUMULATE
        if healthy:
            loss = loss / ACCUMULATE
        loss.backward()
    optimizer.step()
    if step % 20 == 19:
        print(
            f"step {step + 1:3d} loss {running:.3f} "
            f"val bits per character {bits_per_character(model, val):.3f}"
        )
