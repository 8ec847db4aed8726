"""Tomorrow's spread of power prices: the answer passes a ReLU, yet half the spreads are negative.

The model had forecast prices, which were taken as never below zero, so it ends in a ReLU. Now the
target is the spread between two zones, standardised, and all that lies below zero is out of reach.
The place is the output.
The twin ends in the linear layer.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments

KIND = "output_activation_range"
ACCEPT = ("dead_relu",)
PLACE = ("output*", "out")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


class SpreadModel(torch.nn.Module):
    def __init__(self, n_in, clamp):
        super().__init__()
        self.lstm = torch.nn.LSTM(n_in, 24, batch_first=True)
        self.out = torch.nn.Linear(24, 1)
        self.clamp = clamp

    def forward(self, x):
        h, _ = self.lstm(x)
        y = self.out(h[:, -1]).squeeze(1)
        return F.relu(y) if self.clamp else y


rng = np.random.default_rng(seed)
days = 1800
wind_n, wind_s, load = np.zeros((3, days))
for d in range(1, days):
    wind_n[d] = 0.8 * wind_n[d - 1] + rng.normal()
    wind_s[d] = 0.7 * wind_s[d - 1] + rng.normal()
    load[d] = 0.6 * load[d - 1] + rng.normal()
load += 1.2 * np.cos(2 * np.pi * np.arange(days) / 7)
spread = np.zeros(days)
for d in range(1, days):
    push = 3 * np.tanh(0.6 * (wind_n[d - 1] - wind_s[d - 1])) - 0.8 * load[d - 1]
    spread[d] = 0.5 * spread[d - 1] + push + rng.normal(0, 0.7)

table = np.stack([wind_n, wind_s, load, spread], 1)
table = (table - table[:1400].mean(0)) / table[:1400].std(0)
table = torch.tensor(table, dtype=torch.float32)
x = torch.stack([table[d - 7 : d] for d in range(7, days)])
y = table[7:, 3]
x_train, y_train, x_val, y_val = x[:1393], y[:1393], x[1393:], y[1393:]

model = SpreadModel(4, clamp=not healthy)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
best = float("inf")
for epoch in range(12):
    for idx in torch.randperm(len(x_train)).split(50):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x_train[idx]), y_train[idx])
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        val = F.mse_loss(model(x_val), y_val).item()
    best = min(best, val)
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1}: train {loss.item():.3f} val {val:.3f} best {best:.3f}")
