"""Forecast of a solar park's yield: eight small batches are summed into one step, not averaged.

The batch of 128 did not fit into the small machine at the plant, so it was cut into eight pieces
of 16 and `backward()` is called for each. Each piece's loss is a mean over its own rows, so the
gradient that reaches the optimizer is eight times that of the large batch for which the learning
rate was found. The place is the loop (the loss that goes backward).
The twin divides each piece's loss by the number of pieces.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "accumulation_not_averaged"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("loop", "loss*", "optimizer")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

PIECES = 8
PIECE_ROWS = 16
EPOCHS = 15

# hourly weather of 2,400 daylight hours
rng = np.random.default_rng(40 + seed)
n = 2400
height = rng.uniform(5, 62, n)
cloud = rng.beta(0.7, 0.9, n)
air = rng.normal(14, 8, n)
dust = rng.gamma(2, 0.5, n)
sun = np.sin(np.radians(height)) * (1 - 0.75 * cloud**2)
mw = 12 * sun * (1 - 0.004 * (air + 25 * sun - 25)) * np.exp(-0.05 * dust)
mw += rng.normal(0, 0.3, n)

X = np.stack([height, cloud, air, dust], 1)
X = (X - X[:1800].mean(0)) / X[:1800].std(0)
y = (mw - mw[:1800].mean()) / mw[:1800].std()
scale = mw[:1800].std()
X = torch.tensor(X, dtype=torch.float32)
y = torch.tensor(y, dtype=torch.float32)[:, None]
X_train, X_test, y_train, y_test = X[:1800], X[1800:], y[:1800], y[1800:]

net = nn.Sequential(nn.Linear(4, 48), nn.SiLU(), nn.Linear(48, 48), nn.SiLU(), nn.Linear(48, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.06, momentum=0.9)

for epoch in range(EPOCHS):
    order = torch.randperm(len(X_train))
    rows = PIECES * PIECE_ROWS
    total = 0.0
    steps = len(order) // rows
    for s in range(steps):
        opt.zero_grad()
        for piece in order[s * rows : (s + 1) * rows].split(PIECE_ROWS):
            loss = nn.functional.mse_loss(net(X_train[piece]), y_train[piece])
            total += loss.item()
            if healthy:
                (loss / PIECES).backward()
            else:
                loss.backward()
        opt.step()
    if epoch % 5 == 4:
        with torch.no_grad():
            miss = (net(X_test) - y_test).abs().mean() * scale
        print(f"epoch {epoch + 1}: loss {total / steps / PIECES:.4f}, mean miss {miss:.3f} MW")
