"""Flat prices by an MLP: the target is log(price), and the column "price" is still among the
features.

`columns.drop("log_price")` was right for the first version, which predicted the other column. R2
goes to nearly 1 for listings whose price is known, and is nothing for those that are not priced
yet (where the column holds the mean). The place is the data / the input. The twin drops both
columns.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "target_leak"
ACCEPT = ()
PLACE = ("data", "input", "net.0", "net.0.weight")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
rng = np.random.default_rng(seed)


def listings(n):
    table = {
        "area": rng.lognormal(4.2, 0.35, n),
        "floor": rng.integers(0, 9, n).astype(float),
        "age": rng.uniform(0, 90, n),
        "metro_minutes": rng.gamma(3.0, 4.0, n),
        "renovated": (rng.random(n) < 0.3).astype(float),
        "balcony": (rng.random(n) < 0.5).astype(float),
    }
    log_price = (
        8.2
        + 0.85 * np.log(table["area"])
        - 0.012 * table["metro_minutes"]
        - 0.003 * table["age"]
        + 0.12 * table["renovated"] * (table["age"] > 30)
        + 0.04 * table["balcony"]
        + rng.normal(0, 0.15, n)
    )
    table["price"] = np.exp(log_price)
    table["log_price"] = log_price
    return table


class Listings(Dataset):
    def __init__(self, table, columns, stats):
        x = np.stack([(table[c] - stats[c][0]) / stats[c][1] for c in columns], 1)
        mean, std = stats["log_price"]
        self.x = torch.tensor(x, dtype=torch.float32)
        self.y = torch.tensor((table["log_price"] - mean) / std, dtype=torch.float32)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class Regressor(nn.Module):
    def __init__(self, n_in):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(n_in, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1)
        )

    def forward(self, x):
        return self.net(x).squeeze(-1)


def r2(model, data):
    model.eval()
    with torch.no_grad():
        return 1 - (model(data.x) - data.y).pow(2).mean().item() / data.y.var().item()


train, val, unpriced = listings(2000), listings(600), listings(600)
stats = {c: (v.mean(), v.std()) for c, v in train.items()}
unpriced["price"] = np.full(600, stats["price"][0])
dropped = {"log_price", "price"} if healthy else {"log_price"}
columns = [c for c in train if c not in dropped]
train_set, val_set, new_set = (Listings(t, columns, stats) for t in (train, val, unpriced))

model = Regressor(len(columns))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(12):
    model.train()
    for xb, yb in DataLoader(train_set, 64, shuffle=True):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(xb), yb)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f} val R2 {r2(model, val_set):.3f}")
print(f"R2 on listings not yet priced {r2(model, new_set):.3f}")
