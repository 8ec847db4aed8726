"""Default of loans from the table as the bank exports it: with the fee for collecting the debt.

The fee is charged only after a default. The list of columns to drop has the outcome and the ids;
nobody asked when each column is filled in. Held-out accuracy is nearly perfect, and new
applications, for which the fee is 0, are all "good". The place is the input (a column). The twin
drops the column.
"""

import numpy as np
import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "target_leak"
ACCEPT = ()
PLACE = ("input", "data")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
DROP = ["loan_id", "defaulted"] + (["recovery_fee"] if healthy else [])


def loans(n, seed, *, new=False):
    r = np.random.default_rng(seed)
    income, amount = r.lognormal(3.6, 0.4, n), r.lognormal(2.5, 0.6, n)
    score, rate = r.normal(680, 55, n), r.uniform(4, 24, n)
    late, years = r.poisson(0.6, n), r.uniform(0, 25, n)
    odds = (
        -2.1
        + 2.2 * amount / income
        - (score - 680) / 45
        + 0.9 * late
        + 0.1 * (rate - 12)
        - 0.05 * years
    )
    defaulted = r.random(n) < 1 / (1 + np.exp(-1.4 * odds))
    fee = np.where(defaulted & (r.random(n) < 0.96), 0.08 * amount + r.normal(0, 0.1, n) + 0.4, 0.0)
    return {
        "loan_id": np.arange(n),
        "income": income,
        "amount": amount,
        "score": score,
        "rate": rate,
        "late_payments": late,
        "years_employed": years,
        "recovery_fee": np.zeros(n) if new else fee,
        "defaulted": defaulted,
    }


def features(table):
    columns = [table[name] for name in table if name not in DROP]
    return torch.tensor(np.stack(columns, 1), dtype=torch.float32), torch.tensor(
        table["defaulted"]
    ).float()


(x, y), (x_val, y_val), (x_new, y_new) = (
    features(loans(2600, 10 + seed)),
    features(loans(800, 5000 + seed)),
    features(loans(800, 9000 + seed, new=True)),
)
x, x_val, x_new = standardise(x, x_val, x_new)
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
model = nn.Sequential(
    nn.Linear(x.shape[1], 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 1)
)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-4)
criterion = nn.BCEWithLogitsLoss()


def scores(x, y):
    with torch.no_grad():
        said = model(x).squeeze(1) > 0
    recall = (said & (y > 0)).sum() / (y > 0).sum()
    return (said == (y > 0)).float().mean().item(), recall.item()


for epoch in range(10):
    model.train()
    total = 0.0
    for row, outcome in loader:
        optimizer.zero_grad()
        loss = criterion(model(row).squeeze(1), outcome)
        loss.backward()
        optimizer.step()
        total += loss.item() / len(loader)
    model.eval()
    (accuracy, recall), (new_accuracy, new_recall) = scores(x_val, y_val), scores(x_new, y_new)
    print(
        f"epoch {epoch} loss {total:.4f} val accuracy {accuracy:.3f} recall {recall:.3f} | "
        f"new applications: accuracy {new_accuracy:.3f} recall {new_recall:.3f}"
    )
