"""Bank credit: the outcome is coded 1 and 2, and the loss expects 0 and 1.

The file with the credits says 1 for repaid and 2 for defaulted, as the old statistics package
liked it. The column was turned into floats and given to the binary cross-entropy as it stood, so
the loss goes below zero and pushes all outputs up without end.
The place is the loss (or the input, the loader). The twin subtracts 1.
"""

import numpy as np
import torch
from data import arguments
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn

KIND = "labels_out_of_range"
ACCEPT = ("wrong_loss",)
PLACE = ("loss*", "input*", "loader")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
rng = np.random.default_rng(seed)

amount = rng.gamma(2, 3000, 2000)
months = rng.integers(6, 60, 2000)
income = rng.gamma(4, 800, 2000)
age = rng.integers(19, 75, 2000)
owns_home = rng.random(2000) < 0.4
risk = 0.9 * amount / months / income * 4 - 0.02 * (age - 40) - 1.2 * owns_home - 0.3
outcome = np.where(rng.random(2000) < 1 / (1 + np.exp(-2 * risk)), 2, 1)

X = np.column_stack([np.log(amount), months, np.log(income), age, owns_home])
X_tr, X_te, y_tr, y_te = train_test_split(X, outcome, test_size=0.3, random_state=seed)
scaler = StandardScaler().fit(X_tr)
X_tr = torch.tensor(scaler.transform(X_tr), dtype=torch.float32)
X_te = torch.tensor(scaler.transform(X_te), dtype=torch.float32)
y_tr = torch.tensor(y_tr, dtype=torch.float32).unsqueeze(1)
if healthy:
    y_tr = y_tr - 1

model = nn.Sequential(nn.Linear(5, 24), nn.ReLU(), nn.Linear(24, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)

for epoch in range(20):
    perm = torch.randperm(len(X_tr))
    epoch_loss = 0.0
    for i in range(0, len(X_tr), 70):
        idx = perm[i : i + 70]
        optimizer.zero_grad()
        loss = criterion(model(X_tr[idx]), y_tr[idx])
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item() * len(idx)
    if (epoch + 1) % 5 == 0:
        with torch.no_grad():
            defaulted = (model(X_te).squeeze(1) > 0).numpy()
        acc = (defaulted == (y_te == 2)).mean()
        print(f"Epoch {epoch + 1}/20, loss {epoch_loss / len(X_tr):.4f}, test accuracy {acc:.3f}")
