"""Revenue of a farm's field: the target is in bare euros, tens of thousands of them.

The inputs were standardised with care, the column to be predicted was not: it came straight from
the accounts. A net whose answers begin near zero must first crawl to 40,000 by steps of the
learning rate, and the loss is in the billions. The place is the input (the target).
The twin standardises it and turns the answers back.
"""

import numpy as np
import torch
from data import arguments
from sklearn.metrics import r2_score
from sklearn.preprocessing import StandardScaler
from torch import nn

KIND = "target_not_normalized"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("input*", "loss*", "output*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
rng = np.random.default_rng(seed + 21)


def fields(n):
    hectares = rng.lognormal(2.9, 0.35, n)
    rain = rng.normal(620, 110, n)
    soil = rng.uniform(25, 90, n)
    nitrogen = rng.normal(150, 35, n)
    crop = rng.integers(0, 4, n)
    tonnes = (3 + 0.06 * soil) * (1 - ((rain - 650) / 500) ** 2)
    tonnes *= 1 - ((nitrogen - 170) / 260) ** 2
    price = np.array([215, 195, 430, 180])[crop] * np.array([1, 0.95, 0.55, 1.2])[crop]
    euros = hectares * tonnes * price * rng.lognormal(0, 0.08, n)
    return np.column_stack([hectares, rain, soil, nitrogen, np.eye(4)[crop]]), euros


x, euros = fields(1600)
x_test, euros_test = fields(400)
scaler = StandardScaler().fit(x)
x = torch.tensor(scaler.transform(x), dtype=torch.float32)
x_test = torch.tensor(scaler.transform(x_test), dtype=torch.float32)
target_scaler = StandardScaler(with_mean=healthy, with_std=healthy).fit(euros[:, None])
y = torch.tensor(target_scaler.transform(euros[:, None]), dtype=torch.float32)

regressor = nn.Sequential(
    nn.Linear(8, 64), nn.LeakyReLU(), nn.Linear(64, 64), nn.LeakyReLU(), nn.Linear(64, 1)
)
optimizer = torch.optim.Adam(regressor.parameters(), lr=1e-3)
for epoch in range(1, 16):
    losses = []
    for rows in torch.randperm(1600).split(32):
        loss = nn.functional.mse_loss(regressor(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    if epoch % 3 == 0:
        with torch.no_grad():
            said = target_scaler.inverse_transform(regressor(x_test).numpy())
        error = np.abs(said[:, 0] - euros_test).mean()
        r2 = r2_score(euros_test, said[:, 0])
        print(f"epoch {epoch} loss {np.mean(losses):.4g} error {error:,.0f} EUR R2 {r2:.3f}")
