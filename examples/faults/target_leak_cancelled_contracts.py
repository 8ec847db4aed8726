"""Which customers of a phone company will leave; a column of the table is written when they do.

The export was taken at the end of the year and has "final invoice": zero for those who stay and
a sum for those who left. Training and validation come from the same export and look splendid.
For the customers of next month, whose final invoices do not exist yet, the model is useless.
The place is the input, the last column.
The twin leaves the column out.
"""

import numpy as np
import torch
from data import arguments, standardise
from sklearn.metrics import roc_auc_score
from torch import nn

KIND = "target_leak"
ACCEPT = ()
PLACE = ("input*", "loader")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
COLUMNS = ["months", "calls_to_service", "minutes", "price", "age", "data_gb", "final_invoice"]


def customers(n, rng):
    months = rng.exponential(24, n)
    calls = rng.poisson(1.3, n)
    minutes = rng.gamma(3, 60, n)
    price = rng.choice([15.0, 25.0, 40.0], n)
    age = rng.normal(45, 14, n)
    data_gb = rng.gamma(2, 6, n)
    score = 0.8 * calls - 0.05 * months + 0.05 * price - 0.004 * minutes - 0.9
    left = (rng.random(n) < 1 / (1 + np.exp(-score))).astype(np.float32)
    final_invoice = left * (price * rng.uniform(0.3, 2.0, n) + 10)
    table = np.stack([months, calls, minutes, price, age, data_gb, final_invoice], 1)
    return table.astype(np.float32), left


rng = np.random.default_rng(seed)
export, left = customers(4000, rng)
next_month, will_leave = customers(1500, rng)
next_month[:, -1] = 0.0

chosen = COLUMNS[:-1] if healthy else COLUMNS
index = [COLUMNS.index(c) for c in chosen]
x = torch.from_numpy(export[:, index])
x_train, x_val, x_next = standardise(x[:3000], x[3000:], torch.from_numpy(next_month[:, index]))
y_train = torch.from_numpy(left[:3000])

model = nn.Sequential(nn.Linear(len(chosen), 24), nn.ReLU(), nn.Dropout(0.1), nn.Linear(24, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
criterion = nn.BCEWithLogitsLoss()
for epoch in range(10):
    model.train()
    epoch_loss = []
    for rows in torch.randperm(3000).split(64):
        loss = criterion(model(x_train[rows]).squeeze(1), y_train[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        epoch_loss.append(loss.item())
    model.eval()
    with torch.no_grad():
        auc = roc_auc_score(left[3000:], model(x_val).squeeze(1).numpy())
    print(f"epoch {epoch}: loss {np.mean(epoch_loss):.4f} val AUC {auc:.3f}")
with torch.no_grad():
    risk = torch.sigmoid(model(x_next).squeeze(1)).numpy()
hits = ((risk > 0.5) == (will_leave > 0.5)).mean()
print(f"next month: accuracy {hits:.3f}, AUC {roc_auc_score(will_leave, risk):.3f}")
