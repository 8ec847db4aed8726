"""Will a loan default? Among the columns is what was recovered after the default, which nobody
knows when the loan is asked for.

Validation (of the same table) is nearly perfect; of loans as they are when they come in, with the
column at 0, it says that hardly one will default. The place is the input.
"""

import numpy as np
import torch
from data import arguments
from sklearn.metrics import roc_auc_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "target_leak"
ACCEPT = ()
PLACE = ("input*", "loader", "")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
rng = np.random.default_rng(900 + seed)
N = 3000
columns = {
    "loan_amnt": rng.gamma(4, 3500, N),
    "annual_inc": rng.lognormal(11, 0.5, N),
    "int_rate": rng.normal(13, 4, N).clip(5),
    "dti": rng.gamma(4, 4.5, N),
    "fico": rng.normal(700, 30, N),
    "inq_last_6mths": rng.poisson(0.8, N).astype(float),
    "revol_util": rng.uniform(0, 100, N),
    "emp_length": rng.integers(0, 11, N).astype(float),
}
risk = 0.16 * (columns["int_rate"] - 13) + 0.05 * (columns["dti"] - 18)
risk += 0.5 * (columns["inq_last_6mths"] - 0.8) - 0.02 * (columns["fico"] - 700)
risk += columns["loan_amnt"] / columns["annual_inc"] * 3 - 0.7
default = rng.random(N) < 1 / (1 + np.exp(-1.3 * (risk - 0.9)))
recovered = default * (rng.random(N) < 0.93) * columns["loan_amnt"] * rng.beta(2, 4, N)
columns["recoveries"] = recovered
columns["last_pymnt_amnt"] = columns["loan_amnt"] / 36 * rng.lognormal(0, 0.3, N)

use = [c for c in columns if c != "last_pymnt_amnt"]
if healthy:
    use.remove("recoveries")
skewed = {"loan_amnt", "annual_inc", "recoveries"}
table = np.stack([np.log1p(columns[c]) if c in skewed else columns[c] for c in use], 1)
train, val = np.split(rng.permutation(N), [2200])
mean, std = table[train].mean(0), table[train].std(0)
table = (table - mean) / std
X, y = torch.tensor(table, dtype=torch.float32), torch.tensor(default, dtype=torch.float32)

net = nn.Sequential(
    nn.Linear(len(use), 32),
    nn.ReLU(),
    nn.Dropout(0.1),
    nn.Linear(32, 16),
    nn.ReLU(),
    nn.Linear(16, 1),
)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
loss_fn = nn.BCEWithLogitsLoss()
loader = DataLoader(TensorDataset(X[train], y[train]), batch_size=64, shuffle=True)


def predict(x):
    net.eval()
    with torch.no_grad():
        return net(x).squeeze(1)


for epoch in range(12):
    net.train()
    losses = []
    for xb, yb in loader:
        loss = loss_fn(net(xb).squeeze(1), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    out = predict(X[val])
    auc = roc_auc_score(y[val], out)
    print(
        f"epoch {epoch:2d} loss {np.mean(losses):.3f} val {loss_fn(out, y[val]):.3f} auc {auc:.3f}"
    )
new = X[val].clone()
if not healthy:
    new[:, -1] = -mean[-1] / std[-1]  # nothing has been recovered yet
out = predict(new)
print(
    f"new applications: loss {loss_fn(out, y[val]):.3f}, auc {roc_auc_score(y[val], out):.3f}, ",
    end="",
)
print(f"defaults foreseen {out.sigmoid().mean():.3f}, seen {y[val].mean():.3f}")
