"""What a flat will sell for, from its listing; one column of the table knows the answer.

The export of past sales has a column with the price per square metre, worked out from the price
that was paid. Together with the area it gives the answer away. The validation, cut from the same
export, looks splendid; a flat that is still for sale has only its district's average there.
The place is the input: the column with the price per square metre.
The twin uses the average of the district, which is known beforehand.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "target_leak"
ACCEPT = ()
PLACE = ("input*", "loader")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
rng = np.random.default_rng(seed)

# %% the export of sales
N_SALES, N_FOR_SALE, N_DISTRICTS = 2000, 400, 25
N = N_SALES + N_FOR_SALE
level = rng.normal(4000, 900, N_DISTRICTS)
district = rng.integers(0, N_DISTRICTS, N)
area = rng.gamma(6, 13, N) + 20
floor = rng.integers(0, 8, N)
lift = rng.integers(0, 2, N)
built = rng.integers(1900, 2020, N)
to_station = rng.gamma(2, 400, N)
condition = rng.integers(1, 6, N)
per_metre = (
    level[district]
    + 220 * (condition - 3)
    - 0.35 * to_station
    + 9 * (built - 1960)
    + 60 * floor * (2 * lift - 1)
    + rng.normal(0, 550, N)
)
price = np.clip(per_metre, 800, None) * area
sold = np.arange(N) < N_SALES

# %% columns of the model
metre_price = price / area
district_mean = np.array([metre_price[sold & (district == d)].mean() for d in range(N_DISTRICTS)])
if healthy:
    metre_column = district_mean[district]
else:
    metre_column = np.where(sold, metre_price, district_mean[district])
columns = {
    "area": area,
    "floor": floor,
    "lift": lift,
    "built": built,
    "to_station": np.log1p(to_station),
    "condition": condition,
    "metre_price": metre_column,
}
table = np.stack(list(columns.values()), axis=1)
target = np.log(price)

# %% split and scale
train = np.arange(N) < 1500
val = sold & ~train
table = (table - table[train].mean(0)) / table[train].std(0)
shift, scale = target[train].mean(), target[train].std()
X = torch.tensor(table, dtype=torch.float32)
t = torch.tensor((target - shift) / scale, dtype=torch.float32)
train, val, for_sale = (torch.from_numpy(m) for m in (train, val, ~sold))

# %% model
model = nn.Sequential(
    nn.Linear(len(columns), 64), nn.GELU(), nn.Linear(64, 32), nn.GELU(), nn.Linear(32, 1)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 16)


def percent_off(rows):
    model.eval()
    with torch.no_grad():
        log_ratio = (model(X[rows]).squeeze(1) - t[rows]) * scale
    model.train()
    return 100 * (log_ratio.exp() - 1).abs().median().item()


X_train, t_train = X[train], t[train]
for epoch in range(1, 17):
    losses = []
    for rows in torch.randperm(len(X_train)).split(50):
        optimizer.zero_grad()
        loss = (model(X_train[rows]).squeeze(1) - t_train[rows]).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    scheduler.step()
    if epoch % 4 == 0:
        print(f"{epoch:2d}  mse {np.mean(losses):.4f}  validation off by {percent_off(val):.1f} %")

print(f"flats sold since then: off by {percent_off(for_sale):.1f} %")
