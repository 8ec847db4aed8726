"""A GRU learns to add up bits modulo four, with rows that grow from 3 to 9 bits.

Long rows at once are learned late or never. So the rows become longer as soon as the last thirty
batches went well, and with each new length the loss leaps up before it falls again.
"""

from collections import deque

import torch
from data import arguments
from torch import nn

ODD = "the loss leaps up time and again: the task gets harder whenever it is mastered (curriculum)"


class Adder(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(1, 32, batch_first=True)
        self.digit = nn.Linear(32, 4)

    def forward(self, bits):
        states, _ = self.gru(bits)
        return self.digit(states[:, -1])


def rows(count, length, g):
    bits = torch.randint(0, 2, (count, length), generator=g)
    return 2.0 * bits[..., None] - 1, bits.sum(1) % 4


_, seed = arguments(__doc__)
g = torch.Generator().manual_seed(seed)
model = Adder()
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
length, recent = 3, deque(maxlen=30)
for step in range(1, 801):
    bits, total = rows(64, length, g)
    loss = nn.functional.cross_entropy(model(bits), total)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    recent.append(loss.item())
    if step % 100 == 0:
        bits, total = rows(500, 9, g)
        with torch.no_grad():
            right = (model(bits).argmax(1) == total).float().mean().item()
        print(f"step {step} length {length} loss {loss.item():.3f}; nine bits: {right:.2f} right")
    if length < 9 and len(recent) == 30 and sum(recent) / 30 < 0.15:
        length += 1
        recent.clear()
