"""Learns to write short sentences letter by letter with an LSTM of three units.

The size was cut down to try the script out on a laptop, and the setting stayed like that. Three
numbers cannot hold where in which sentence one is. The place is the recurrent layer.
The twin has 96 units.
"""

from dataclasses import dataclass

import torch
from data import arguments, text
from torch import nn

KIND = "low_capacity"
ACCEPT = ()
PLACE = ("lstm", "embed", "output*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


@dataclass(frozen=True)
class Size:
    embedding: int = 16
    units: int = 96


class Scribe(nn.Module):
    def __init__(self, letters, size):
        super().__init__()
        self.embed = nn.Embedding(letters, size.embedding)
        self.lstm = nn.LSTM(size.embedding, size.units, batch_first=True)
        self.output = nn.Linear(size.units, letters)

    def forward(self, x, state=None):
        h, state = self.lstm(self.embed(x), state)
        return self.output(h), state


letters, alphabet = text(seed, 700)
lanes = letters[: len(letters) // 24 * 24].view(24, -1)
train, valid = lanes[:20], lanes[20:]
model = Scribe(len(alphabet), Size() if healthy else Size(units=3))
optimizer = torch.optim.Adam(model.parameters(), lr=6e-3)


def passage(part, learn):
    """Runs once along the lanes, carrying the state from one piece to the next."""
    state, losses = None, []
    for at in range(0, part.shape[1] - 33, 32):
        logits, state = model(part[:, at : at + 32], state)
        state = tuple(s.detach() for s in state)
        target = part[:, at + 1 : at + 33]
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())
        if learn:
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)


for epoch in range(10):
    loss = passage(train, learn=True)
    with torch.no_grad():
        val = passage(valid, learn=False)
    print(f"epoch {epoch} loss {loss:.3f} validation {val:.3f} ({val / 0.6931:.2f} bits a letter)")
