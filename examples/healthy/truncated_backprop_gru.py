"""A GRU follows eight long signals in order, chunk by chunk, with its state carried over and
detached.

The chunks must come in the order of time, so nothing is shuffled, and the state is cut from the
graph at each chunk.
"""

import math

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = "unshuffled data in the order of time, and a detached state between the batches"

_, seed = arguments(__doc__)
STREAMS, CHUNK, CHUNKS, EPOCHS = 16, 20, 40, 8


def signals(n, length):
    t = torch.arange(length)
    period = 12 + 10 * torch.rand(n, 1)
    x = (2 * math.pi * t / period + 6.28 * torch.rand(n, 1)).sin() + 0.1 * torch.randn(n, length)
    slow = torch.zeros(n, length)
    for i in range(1, length):
        slow[:, i] = 0.95 * slow[:, i - 1] + 0.3 * x[:, i - 1]
    return torch.stack([x, torch.randn(n, length)], -1), slow.unsqueeze(-1)


class Follower(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.gru = nn.GRU(2, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x, state=None):
        h, state = self.gru(x, state)
        return self.out(h), state


x, y = signals(STREAMS, CHUNK * CHUNKS)
x_val, y_val = signals(8, 400)
mean, std = y.mean(), y.std()
y, y_val = (y - mean) / std, (y_val - mean) / std

model = Follower()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS * CHUNKS)
for epoch in range(1, EPOCHS + 1):
    model.train()
    state = None
    total = 0.0
    for i in range(CHUNKS):
        if state is not None:
            state = state.detach()
        part = slice(i * CHUNK, (i + 1) * CHUNK)
        out, state = model(x[:, part], state)
        loss = F.mse_loss(out, y[:, part])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        out, _ = model(x_val)
        val = F.mse_loss(out, y_val).item()
    print(f"epoch {epoch}: mse {total / CHUNKS:.4f}, val mse {val:.4f}")
