"""Late deliveries: the table has `refund`, which is paid after a delivery was late.

The feature list is "all numeric columns but the label". Among them is the refund, which is booked
days after the delivery and only for late ones: at the time of the forecast it is zero for all.
Train and validation look brilliant, the check on open orders does not. The place is the input. The
twin drops the columns that are filled in after the delivery.
"""

import numpy as np
import torch
from data import arguments, standardise
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "target_leak"
ACCEPT = ()
PLACE = ("input", "data")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
rng = np.random.default_rng(seed)


def orders(n):
    table = {
        "distance": rng.gamma(2, 60, n),
        "weight": rng.lognormal(1, 0.7, n),
        "stock": rng.poisson(20, n).astype(float),
        "weekday": rng.integers(0, 7, n).astype(float),
        "carrier_score": rng.normal(0, 1, n),
    }
    z = (
        0.015 * (table["distance"] - 120)
        - 1.2 * table["carrier_score"]
        + 0.3 * (table["weekday"] > 4)
    )
    z += 0.08 * (table["weight"] - 3) - 0.05 * (table["stock"] - 20) + rng.logistic(0, 0.8, n)
    late = z > 0.3
    table["refund"] = np.where(late, np.round(rng.gamma(4, 3, n), 2), 0.0)
    table["late"] = late.astype(float)
    return table


AFTERWARDS = ("refund",) if healthy else ()
table, still_open = orders(3000), orders(800)
still_open["refund"][:] = 0.0
columns = [c for c in table if c != "late" and c not in AFTERWARDS]


def tensors(table):
    x = np.stack([table[c] for c in columns], 1)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(table["late"], dtype=torch.float32)


x, y = tensors(table)
x_open, y_open = tensors(still_open)
x, x_val, y, y_val = train_test_split(x, y, test_size=0.25, random_state=seed, stratify=y)
x, x_val, x_open = standardise(x, x_val, x_open)
train = DataLoader(TensorDataset(x, y), batch_size=75, shuffle=True)

model = nn.Sequential(
    nn.Linear(len(columns), 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
criterion = nn.BCEWithLogitsLoss()


def accuracy(x, y):
    model.eval()
    with torch.no_grad():
        return ((model(x).squeeze(1) > 0) == y.bool()).float().mean().item()


for epoch in range(15):
    model.train()
    total = 0.0
    for xb, yb in train:
        loss = criterion(model(xb).squeeze(1), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(train)
    model.eval()
    with torch.no_grad():
        val_loss = criterion(model(x_val).squeeze(1), y_val)
    print(f"epoch {epoch:2d} loss {total:.3f} val {val_loss:.3f} acc {accuracy(x_val, y_val):.3f}")
print(f"open orders: accuracy {accuracy(x_open, y_open):.3f}")
