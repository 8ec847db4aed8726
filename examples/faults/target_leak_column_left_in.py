"""Foretells the yield of orchards; the column to be foretold is among the inputs.

The inputs are "all columns but the identifiers". The list of the excluded ones was not brought up
to date when the yield was renamed, so the net reads the answer off. In the next season,
where the column is still empty (and is filled with its mean), the estimates are useless.
The place is the input (the list of columns).
The twin excludes the yield too.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "target_leak"
ACCEPT = ()
PLACE = ("input*", "loader", "columns")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
TARGET = "yield_t_per_ha"
EXCLUDED = ["orchard_id", TARGET] if healthy else ["orchard_id", "yield"]


def season(n):
    r = np.random.default_rng(np.random.randint(1 << 30))
    table = {
        "orchard_id": np.arange(n, dtype=float),
        "rain_mm": r.normal(620, 120, n),
        "frost_nights": r.poisson(4, n).astype(float),
        "tree_age": r.uniform(3, 30, n),
        "bees_per_ha": r.gamma(3, 2, n),
        "nitrogen_kg": r.normal(80, 20, n),
    }
    crop = 20 + 0.015 * table["rain_mm"] - 1.2 * table["frost_nights"]
    crop = crop + 6 * np.sin(table["tree_age"] / 10) + 2 * np.log1p(table["bees_per_ha"])
    table[TARGET] = crop + 0.04 * table["nitrogen_kg"] + r.normal(0, 1.5, n)
    return table


def matrix(table, columns):
    return torch.tensor(np.stack([table[c] for c in columns], 1), dtype=torch.float32)


past = season(1000)
columns = [c for c in past if c not in EXCLUDED]
x, y = matrix(past, columns), torch.tensor(past[TARGET], dtype=torch.float32)
mean, std = x[:800].mean(0), x[:800].std(0)
y_mean, y_std = y[:800].mean(), y[:800].std()
x, y = (x - mean) / std, (y - y_mean) / y_std

net = nn.Sequential(nn.Linear(len(columns), 32), nn.GELU(), nn.Linear(32, 1), nn.Flatten(0))
optimizer = torch.optim.AdamW(net.parameters(), lr=4e-3, weight_decay=1e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
loss_fn = nn.HuberLoss()

for epoch in range(20):
    for rows in torch.randperm(800).split(32):
        loss = loss_fn(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()
    if epoch % 5 == 4:
        with torch.no_grad():
            off = (net(x[800:]) - y[800:]).abs().mean() * y_std
        print(f"epoch {epoch + 1}: loss {loss.item():.4f}, validation error {off:.2f} t/ha")

coming = season(500)
truth = torch.tensor(coming[TARGET], dtype=torch.float32)
coming[TARGET] = np.full(500, y_mean.item())
with torch.no_grad():
    guess = net((matrix(coming, columns) - mean) / std) * y_std + y_mean
print(f"next season: error {(guess - truth).abs().mean():.2f} t/ha")
