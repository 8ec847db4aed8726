"""Rented bicycles by weather and time of day; the time of day is always zero.

The minutes are divided by 1,440 as whole numbers, so the column is 0 in all rows, and the most
telling feature is lost. The place is the input. The twin divides as floats.
"""

import numpy as np
import torch
from data import arguments, batches, standardise
from torch import nn

KIND = "constant_feature"
ACCEPT = ()
PLACE = ("input*", "loader")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

n = 3000
minute = np.random.randint(0, 1440, n)
temperature = np.random.normal(14, 7, n)
wind = np.random.gamma(2, 4, n)
holiday = np.random.rand(n) < 0.3
day = minute / 1440
rush = np.exp(-(((day - 0.35) / 0.06) ** 2)) + np.exp(-(((day - 0.73) / 0.08) ** 2))
rented = (
    80
    + 250 * rush * np.where(holiday, 0.5, 1.0)
    + 5 * temperature
    - 3 * wind
    + np.random.normal(0, 20, n)
)

time_of_day = minute / 1440 if healthy else minute // 1440
features = np.stack([time_of_day, temperature, wind, holiday], axis=1)
x = torch.tensor(features, dtype=torch.float32)
y = torch.tensor(rented, dtype=torch.float32)
x, x_val = standardise(x[:2400], x[2400:])
y, y_val = standardise(y[:2400], y[2400:])

model = nn.Sequential(
    nn.Linear(4, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1), nn.Flatten(0)
)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for step, (xb, yb) in enumerate(batches(x, y, size=100, steps=720, seed=seed), 1):
    model.train()
    loss = nn.functional.mse_loss(model(xb), yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 72 == 0:
        model.eval()
        with torch.no_grad():
            val = nn.functional.mse_loss(model(x_val), y_val).item()
        print(
            f"step {step}: train {loss.item():.3f} val {val:.3f} R2 "
            f"{1 - val / y_val.var().item():.3f}"
        )
