"""A price regressor takes logarithms of its skewed columns in the training table only.

Income per head and floor area are skewed, so the preparation takes log1p of them; the line was
added for the training table and forgotten for the validation table, which is then scaled by the
scaler fitted on the logarithms. The training loss is fine, the validation loss enormous. The twin
takes the logarithm in both tables. The place is the input or the loader.
"""

import numpy as np
import torch
from data import arguments
from sklearn.preprocessing import StandardScaler
from torch import nn

KIND = "train_val_mismatch"
ACCEPT = ()
PLACE = ("input*", "loader")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
SKEWED = [0, 1]


def make_table(n, r):
    income = r.lognormal(10.3, 0.5, n)
    area = r.lognormal(4.5, 0.4, n)
    age = r.uniform(0, 80, n)
    floor = r.integers(0, 9, n).astype(float)
    noise_level = r.normal(55, 8, n)
    price = 0.6 * np.log(income) + 0.9 * np.log(area) - 0.006 * age + 0.03 * floor
    price = price - 0.0006 * (noise_level - 50).clip(0) ** 2 + r.normal(0, 0.08, n)
    return np.stack([income, area, age, floor, noise_level], 1), price


r = np.random.default_rng(seed + 10)
x_train, y_train = make_table(2000, r)
x_val, y_val = make_table(500, r)

x_train[:, SKEWED] = np.log1p(x_train[:, SKEWED])
if healthy:
    x_val[:, SKEWED] = np.log1p(x_val[:, SKEWED])
scaler = StandardScaler().fit(x_train)
y_mean, y_std = y_train.mean(), y_train.std()
x_train, x_val = (torch.tensor(scaler.transform(t), dtype=torch.float32) for t in (x_train, x_val))
y_train, y_val = (torch.tensor((t - y_mean) / y_std, dtype=torch.float32) for t in (y_train, y_val))

model = nn.Sequential(nn.Linear(5, 48), nn.SiLU(), nn.Linear(48, 24), nn.SiLU(), nn.Linear(24, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
loss_fn = nn.MSELoss()
batch = 50
for epoch in range(20):
    order = torch.randperm(len(x_train))
    epoch_loss = 0.0
    for start in range(0, len(order), batch):
        rows = order[start : start + batch]
        optimizer.zero_grad()
        loss = loss_fn(model(x_train[rows]).squeeze(-1), y_train[rows])
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item() * len(rows)
    model.eval()
    with torch.no_grad():
        val = loss_fn(model(x_val).squeeze(-1), y_val).item()
    model.train()
    if epoch % 4 == 3:
        print(f"epoch {epoch + 1} mse train {epoch_loss / len(order):.4f} validation {val:.4f}")
