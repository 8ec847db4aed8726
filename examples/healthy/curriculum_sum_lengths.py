"""Remainder of sums by a GRU that first sees short rows of numbers and later longer ones."""

import torch
from data import arguments
from torch import nn

ODD = "The training loss rises whenever the rows become longer: a curriculum, and meant so."

_, seed = arguments(__doc__)


class Parity(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.gru = nn.GRU(1, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, bits):
        h, _ = self.gru(bits.unsqueeze(-1) * 2 - 1)
        return self.head(h[:, -1]).squeeze(1)


def rows(n, length):
    bits = torch.randint(0, 2, (n, length)).float()
    return bits, bits.sum(1) % 2


model = Parity()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
criterion = nn.BCEWithLogitsLoss()
for length in (2, 3, 4, 6, 8, 12):
    for _ in range(150):
        bits, odd = rows(64, length)
        loss = criterion(model(bits), odd)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    with torch.no_grad():
        bits, odd = rows(500, length)
        acc = ((model(bits) > 0) == (odd > 0.5)).float().mean().item()
    print(f"length {length}: loss {loss.item():.4f} val acc {acc:.3f}")
