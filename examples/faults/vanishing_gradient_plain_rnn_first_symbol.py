"""Which symbol began a sequence of 40? By a recurrent net written out by hand.

Fault: the update gate was left out of the port ("a plain cell will do"): the gradient shrinks by a
factor at each step and nothing of the beginning reaches the end. The place is the cell. The loss
stays at that of guessing.
"""

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F

KIND = "vanishing_gradient"
ACCEPT = ("low_capacity",)
PLACE = ("cell*", "rnn*", "", "embed")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
LENGTH, SYMBOLS = 40, 4


class Cell(nn.Module):
    def __init__(self, n_in, width, gated):
        super().__init__()
        self.into = nn.Linear(n_in, width)
        self.again = nn.Linear(width, width, bias=False)
        if gated:
            self.gate = nn.Linear(n_in + width, width)
            nn.init.constant_(self.gate.bias, -3.0)
        self.gated = gated

    def forward(self, x, h):
        new = torch.tanh(self.into(x) + self.again(h))
        if not self.gated:
            return new
        z = torch.sigmoid(self.gate(torch.cat([x, h], 1)))
        return z * new + (1 - z) * h


class Reader(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.embed = nn.Embedding(SYMBOLS + 4, 12)
        self.cell = Cell(12, width, gated=healthy)
        self.out = nn.Linear(width, SYMBOLS)
        self.width = width

    def forward(self, ids):
        h = torch.zeros(len(ids), self.width)
        for x in self.embed(ids).unbind(1):
            h = self.cell(x, h)
        return self.out(h)


def draw(n):
    first = torch.randint(0, SYMBOLS, (n, 1))
    return torch.cat([first, torch.randint(SYMBOLS, SYMBOLS + 4, (n, LENGTH - 1))], 1), first[:, 0]


reader = Reader()
optimizer = torch.optim.Adam(reader.parameters(), lr=4e-3)
val = draw(400)
for step in range(1, 201):
    ids, first = draw(48)
    loss = F.cross_entropy(reader(ids), first)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(reader.parameters(), 1.0)
    optimizer.step()
    if step % 40 == 0:
        with torch.no_grad():
            accuracy = (reader(val[0]).argmax(1) == val[1]).float().mean().item()
        print(f"step {step}: loss {loss.item():.4f}, validation accuracy {accuracy:.3f}")
print(f"loss {loss.item():.4f} | validation accuracy {accuracy:.3f}")
