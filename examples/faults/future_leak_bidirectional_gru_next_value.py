"""Next demand of a warehouse at every hour, GRU: `bidirectional=True` for "better accuracy".

The network predicts x[t + 1] at each position t. A colleague switched the GRU to both directions,
since it halved the validation loss at once: the backward half has read x[t + 1]. Rolled out on a
real forecast, where the future is missing, it fails. The place is the GRU. The twin has one
direction.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "future_leak"
ACCEPT = ("target_leak",)
PLACE = ("rnn", "input")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def demand(n, rng, length=37):
    t = np.arange(length) + rng.integers(0, 24, (n, 1))
    level = rng.normal(0, 0.5, (n, 1))
    daily = np.sin(2 * np.pi * t / 24) + 0.4 * np.sin(4 * np.pi * t / 24 + 1)
    noise = np.zeros((n, length))
    for i in range(1, length):
        noise[:, i] = 0.6 * noise[:, i - 1] + rng.normal(0, 0.4, n)
    return torch.tensor(level + daily + noise, dtype=torch.float32)


class Forecaster(nn.Module):
    def __init__(self, hidden=24, bidirectional=not healthy):
        super().__init__()
        self.rnn = nn.GRU(1, hidden, batch_first=True, bidirectional=bidirectional)
        self.out = nn.Linear(hidden * (1 + bidirectional), 1)

    def forward(self, x):
        h, _ = self.rnn(x.unsqueeze(-1))
        return self.out(h).squeeze(-1)


rng = np.random.default_rng(seed)
series, held_out = demand(1000, rng), demand(200, rng)
train = DataLoader(TensorDataset(series[:, :-1], series[:, 1:]), batch_size=50, shuffle=True)
x_val, y_val = held_out[:, :-1], held_out[:, 1:]
model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
criterion = nn.MSELoss()
for epoch in range(12):
    model.train()
    total = 0.0
    for x, y in train:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item() / len(train)
    model.eval()
    with torch.no_grad():
        val_loss = criterion(model(x_val), y_val)
        # as in production: the series ends at hour 30, and hour 31 is asked for
        real = criterion(model(x_val[:, :30])[:, -1], y_val[:, 29])
    print(f"epoch {epoch:2d} loss {total:.3f} val {val_loss:.3f}  real forecast {real:.3f}")
