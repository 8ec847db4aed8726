"""Regression on the diabetes table with gaps in one column that come in as NaN.

The lab did not measure everything, and the CSV reader makes NaN of an empty cell. The first batch
with a gap makes the loss NaN and the weights with it. The place is the input. The twin fills the
gaps with the mean of the column.
"""

import numpy as np
import torch
from data import arguments, diabetes
from torch import nn

KIND = "nan_input"
ACCEPT = ()
PLACE = ("input*", "loader")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

x, y, x_val, y_val = diabetes(seed)
table = x.numpy().copy()
table[np.random.rand(len(table)) < 0.05, 7] = np.nan  # the lab had no result
if healthy:
    gaps = np.isnan(table)
    table[gaps] = np.take(np.nanmean(table, axis=0), np.nonzero(gaps)[1])
x = torch.from_numpy(table)

model = nn.Sequential(nn.Linear(10, 20), nn.Tanh(), nn.Linear(20, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.1)
mse = nn.MSELoss()

step = 0
while step < 400:
    for rows in torch.randperm(len(x)).split(32):
        model.train()
        loss = mse(model(x[rows])[:, 0], y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % 50 == 0:
            model.eval()
            with torch.no_grad():
                val = mse(model(x_val)[:, 0], y_val).item()
            print(f"step {step}: train {loss.item():.3f}, val {val:.3f}")
