"""Default risk of loans from a table in raw units: the scaler's result is never assigned.

`scaler.fit_transform(x_train)` returns the scaled table; it is called as if it worked in place.
The network gets incomes of 60,000 next to shares of 0.3, and sees nothing but the two columns in
dollars. Train and validation are raw alike, so nothing differs between them. The place is the
input. The twin assigns what the scaler returns.
"""

import numpy as np
import torch
from data import arguments
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "input_not_normalized"
ACCEPT = ()
PLACE = ("input*", "loader")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
COLUMNS = (
    "income",
    "loan",
    "age",
    "late_payments",
    "utilisation",
    "years_employed",
    "open_accounts",
)


def loans(n=6000):
    r = np.random.default_rng(seed)
    income = r.lognormal(10.9, 0.5, n)
    loan = income * r.uniform(0.05, 1.2, n)
    age = r.uniform(20, 70, n)
    late = r.poisson(0.8, n)
    used = r.beta(2, 3, n)
    years = np.clip(r.gamma(2, 3, n), 0, age - 18)
    accounts = r.poisson(5, n)
    logit = (
        2.5 * loan / income
        + 0.8 * late
        + 4 * (used - 0.4)
        - 0.2 * years
        + 0.04 * (accounts - 5) ** 2
        - 2
    )
    y = r.random(n) < 1 / (1 + np.exp(-1.5 * logit))
    return np.stack([income, loan, age, late, used, years, accounts], 1).astype(
        "float32"
    ), y.astype("float32")


x, y = loans()
x_train, x_val, y_train, y_val = train_test_split(
    x, y, test_size=0.25, random_state=seed, stratify=y
)
scaler = StandardScaler()
if healthy:
    x_train = scaler.fit_transform(x_train)
    x_val = scaler.transform(x_val)
else:
    scaler.fit_transform(x_train)
    scaler.transform(x_val)

train_loader = DataLoader(
    TensorDataset(torch.from_numpy(x_train), torch.from_numpy(y_train)),
    batch_size=128,
    shuffle=True,
)
model = nn.Sequential(
    nn.Linear(len(COLUMNS), 64),
    nn.ReLU(),
    nn.Linear(64, 32),
    nn.ReLU(),
    nn.Linear(32, 1),
)
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)

for epoch in range(14):
    model.train()
    total = 0.0
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(xb).squeeze(1), yb)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(yb)
    model.eval()
    with torch.no_grad():
        score = model(torch.from_numpy(x_val)).squeeze(1)
        val_loss = criterion(score, torch.from_numpy(y_val)).item()
    auc = roc_auc_score(y_val, score.numpy())
    print(f"{epoch + 1:2d}: train {total / len(y_train):.4f}  val {val_loss:.4f}  AUC {auc:.3f}")
