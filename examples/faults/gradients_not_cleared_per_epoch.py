"""A GRU learns to write sentences letter by letter, from slices of a long text with the state
carried over. The gradients are cleared where the state is, at the beginning of an epoch.

Within the epoch they add up: the fortieth step goes along the sum of forty gradients, which the
clipping scales down without making it any newer, and the loss swings instead of falling. The place
is the loop.
"""

import torch
from data import arguments, text
from torch import nn
from torch.nn import functional as F

KIND = "gradients_not_cleared"
ACCEPT = ()
PLACE = ("loop", "optimizer")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class Writer(nn.Module):
    def __init__(self, letters, width=96):
        super().__init__()
        self.embed = nn.Embedding(letters, 32)
        self.gru = nn.GRU(32, width, batch_first=True)
        self.out = nn.Linear(width, letters)

    def forward(self, ids, state=None):
        h, state = self.gru(self.embed(ids), state)
        return self.out(h), state


def columns(ids, rows):
    n = len(ids) // rows
    return ids[: n * rows].view(rows, n)


def nll(model, ids):
    with torch.no_grad():
        out, _ = model(ids[:, :-1])
        return F.cross_entropy(out.flatten(0, 1), ids[:, 1:].flatten()).item()


ids, alphabet = text(seed, 1400)
cut = int(0.9 * len(ids))
train, held = columns(ids[:cut], 32), columns(ids[cut:], 32)
model = Writer(len(alphabet))
optimizer = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.9)

for epoch in range(8):
    model.train()
    optimizer.zero_grad()
    state, total, count = None, 0.0, 0
    for at in range(0, train.shape[1] - 31, 30):
        piece = train[:, at : at + 31]
        if healthy:
            optimizer.zero_grad()
        out, state = model(piece[:, :-1], state)
        state = state.detach()
        loss = F.cross_entropy(out.flatten(0, 1), piece[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        total, count = total + loss.item(), count + 1
    model.eval()
    print(f"epoch {epoch}: train {total / count:.3f} val {nll(model, held):.3f} ({count} steps)")
