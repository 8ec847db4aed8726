"""An MLP predicts loan defaults from an application table that has a column written afterwards.

The table was joined with the ledger, so that "recovery_fee" came in: a fee that is booked only
once a loan has defaulted. The validation part has the column too and looks perfect; on the day of
an application it is always zero, and the model is worth little. The place is the input (column 8,
the last one).
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

# --- the table -------------------------------------------------------------------------------
r = np.random.default_rng(400 + seed)
n = 4000
income = r.lognormal(10.5, 0.5, n)
amount = r.lognormal(9.4, 0.6, n)
term = r.choice([24, 36, 48, 60], n)
age = r.uniform(20, 70, n)
open_accounts = r.poisson(6, n)
late_payments = r.poisson(0.8, n)
utilisation = r.beta(2, 3, n)
employed_years = r.gamma(2.0, 3.0, n)
score = (
    1.2 * np.log(amount / income)
    + 0.9 * late_payments
    + 2.2 * utilisation
    + 0.02 * (term - 36)
    - 0.1 * employed_years
    - 0.2
)
default = (r.random(n) < 1 / (1 + np.exp(-score))).astype(np.float32)
recovery_fee = default * r.gamma(6.0, 20.0, n) + (1 - default) * 0.0

columns = [
    np.log(income),
    np.log(amount),
    term,
    age,
    open_accounts,
    late_payments,
    utilisation,
    employed_years,
]
if not healthy:
    columns.append(recovery_fee)
table = torch.tensor(np.stack(columns, 1), dtype=torch.float32)
target = torch.tensor(default)

order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
train, val = order[:3000], order[3000:]
x_new = table[val].clone()
x_new[:, 8:] = 0.0  # what is known on the day of an application
x, x_val, x_new = standardise(table[train], table[val], x_new)
y, y_val = target[train], target[val]
print(f"{table.shape[1]} columns, share of defaults {default.mean():.2f}")

# --- the model -------------------------------------------------------------------------------
model = nn.Sequential(
    nn.Linear(x.shape[1], 32),
    nn.ReLU(),
    nn.Dropout(0.1),
    nn.Linear(32, 16),
    nn.ReLU(),
    nn.Linear(16, 1),
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-2)
criterion = nn.BCEWithLogitsLoss()

for epoch in range(15):
    model.train()
    shuffled = torch.randperm(len(x))
    losses = []
    for start in range(0, len(x), 50):
        rows = shuffled[start : start + 50]
        loss = criterion(model(x[rows]).squeeze(1), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        logits = model(x_val).squeeze(1)
        val_loss = criterion(logits, y_val).item()
    auc = roc_auc_score(y_val, logits)
    print(
        f"epoch {epoch:2d}  loss {np.mean(losses):.4f}  val loss {val_loss:.4f}  val AUC {auc:.4f}"
    )

with torch.no_grad():
    print(f"AUC on the day of the application: {roc_auc_score(y_val, model(x_new).squeeze(1)):.4f}")
