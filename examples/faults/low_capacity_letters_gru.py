"""A GRU that predicts the next letter of simple sentences with a hidden state of only two units.

The user shrinks the recurrent layer to two units (and the letters to two numbers), so that the
loss stays on a plateau far above what the text allows. The place is the recurrent layer gru (or
its neighbours letters and head).
"""

import math

import torch
from data import arguments, text
from torch import nn

KIND = "low_capacity"
ACCEPT = ()
PLACE = ("gru", "gru*", "letters", "head")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)


class NextLetter(nn.Module):
    def __init__(self, letters, hidden):
        super().__init__()
        self.letters = nn.Embedding(letters, 16)
        self.gru = nn.GRU(16, hidden, batch_first=True)
        self.head = nn.Linear(hidden, letters)

    def forward(self, numbers):
        states, _ = self.gru(self.letters(numbers))
        return self.head(states)


def windows(row, size, count, generator):
    start = torch.randint(0, len(row) - size - 1, (count,), generator=generator)
    at = start[:, None] + torch.arange(size + 1)
    return row[at[:, :-1]], row[at[:, 1:]]


row, alphabet = text(seed)
train, val = row[: int(0.9 * len(row))], row[int(0.9 * len(row)) :]
generator = torch.Generator().manual_seed(seed)
model = NextLetter(len(alphabet), 64 if healthy else 2)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, total_iters=700)
criterion = nn.CrossEntropyLoss()

for step in range(700):
    x, y = windows(train, 40, 32, generator)
    loss = criterion(model(x).flatten(0, 1), y.flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    if step % 100 == 99:
        with torch.no_grad():
            x, y = windows(val, 40, 200, generator)
            held = criterion(model(x).flatten(0, 1), y.flatten()).item()
        print(
            f"step {step + 1} loss {loss.item():.3f} validation loss {held:.3f} perplexity {math.exp(held):.2f}"  # noqa: E501
        )
