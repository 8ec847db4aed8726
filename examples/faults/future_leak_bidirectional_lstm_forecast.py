"""A bidirectional LSTM forecasts the next value of a noisy wave at each time.

`bidirectional=True` was copied from a tagger. The backward half has read the value that is to be
forecast: the error falls far below the noise, which no forecast can. With the past only, it is
worse than the honest model. The place is the LSTM. The twin is unidirectional.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "future_leak"
ACCEPT = ("target_leak",)
PLACE = ("lstm", "input*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
T, NOISE = 32, 0.3


def series(n):
    t = torch.arange(T + 1) * (0.2 + 0.3 * torch.rand(n, 1)) + 2 * math.pi * torch.rand(n, 1)
    return (t.sin() + NOISE * torch.randn(n, T + 1)).unsqueeze(-1)


class Forecaster(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        both = not healthy
        self.lstm = nn.LSTM(1, hidden, batch_first=True, bidirectional=both)
        self.linear = nn.Linear(hidden * (2 if both else 1), 1)

    def forward(self, values):
        states, _ = self.lstm(values)
        return self.linear(states)


train, val = series(800), series(200)
loader = DataLoader(TensorDataset(train[:, :-1], train[:, 1:]), batch_size=40, shuffle=True)
model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
criterion = nn.MSELoss()
for epoch in range(1, 19):
    model.train()
    total = 0.0
    for past, following in loader:
        optimizer.zero_grad()
        loss = criterion(model(past), following)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item()
    if epoch % 3 == 0:
        model.eval()
        with torch.no_grad():
            held = criterion(model(val[:, :-1]), val[:, 1:]).item()
        print(f"epoch {epoch} MSE {total / len(loader):.4f} val MSE {held:.4f}")

model.eval()
with torch.no_grad():
    errors = [criterion(model(val[:, :k])[:, -1], val[:, k]).item() for k in range(12, T)]
print(f"noise {NOISE**2:.4f}; val MSE when the series ends now: {sum(errors) / len(errors):.4f}")
