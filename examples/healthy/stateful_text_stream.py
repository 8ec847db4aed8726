"""A GRU reads a text as sixteen running streams, in order and unshuffled, and carries its hidden
state from batch to batch.

It looks odd as the batches come in a fixed order without shuffling and the state is detached at
each step: this is truncated backpropagation through time, as it should be; the state starts anew
with each epoch and for the validation.
"""

import math

import torch
from data import arguments, text
from torch import nn

ODD = (
    "A GRU reads a text as sixteen running streams, in order and unshuffled, and carries its "
    "hidden state from batch to batch"
)
_, seed = arguments(__doc__)

STREAMS, SPAN = 16, 24


class Reader(nn.Module):
    def __init__(self, letters, width=64):
        super().__init__()
        self.embed = nn.Embedding(letters, 24)
        self.gru = nn.GRU(24, width, batch_first=True)
        self.head = nn.Linear(width, letters)

    def forward(self, numbers, state=None):
        out, state = self.gru(self.embed(numbers), state)
        return self.head(out), state


def spans(row):
    length = (len(row) - 1) // STREAMS
    x = row[: length * STREAMS].view(STREAMS, length)
    y = row[1 : length * STREAMS + 1].view(STREAMS, length)
    for at in range(0, length - SPAN, SPAN):
        yield x[:, at : at + SPAN], y[:, at : at + SPAN]


row, alphabet = text(seed, sentences=2200)
cut = int(0.9 * len(row))
model = Reader(len(alphabet))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)

for epoch in range(4):
    model.train()
    state = None
    for step, (x, y) in enumerate(spans(row[:cut])):
        scores, state = model(x, state)
        state = state.detach()
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 80 == 0:
            print(f"epoch {epoch} step {step} loss {loss.item():.3f}")
    scheduler.step()
    model.eval()
    state, losses = None, []
    with torch.no_grad():
        for x, y in spans(row[cut:]):
            scores, state = model(x, state)
            losses.append(nn.functional.cross_entropy(scores.flatten(0, 1), y.flatten()).item())
    val = sum(losses) / len(losses)
    print(f"epoch {epoch} validation loss {val:.3f} perplexity {math.exp(val):.2f}")
