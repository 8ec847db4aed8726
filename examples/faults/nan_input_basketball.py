"""Players' salaries from last season's figures; a shooting percentage of nought out of nought.

`threes / attempts` is NaN for the few players who never tried one. Standardising with nanmean
hides it (the other rows look right), the mean of the loss does not: with the first such player in
a batch the loss is NaN and so are all weights. The place is the input (the column `three_share`).
The twin gives these players the share of 0 that the statistics sheet prints.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "nan_input"
ACCEPT = ()
PLACE = ("input*", "loader")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def season(n):
    r = np.random.default_rng(seed)
    minutes = r.gamma(4, 5.5, n).clip(2, 40)
    skill = r.normal(0, 1, n)
    big = r.random(n) < 0.3
    attempts = r.poisson(np.where(big, 3.0, 30.0) * minutes / 20)
    threes = r.binomial(attempts, np.clip(0.33 + 0.05 * skill, 0.05, 0.6))
    rebounds = np.where(big, 0.35, 0.12) * minutes * np.exp(0.15 * r.normal(0, 1, n))
    points = minutes * (0.45 + 0.1 * skill) * np.exp(0.1 * r.normal(0, 1, n))
    age = r.uniform(19, 38, n)
    log_salary = (
        0.05 * minutes + 0.5 * skill - 0.008 * (age - 29) ** 2 + 0.4 * big + r.normal(0, 0.35, n)
    )
    return minutes, attempts, threes, rebounds, points, age, log_salary


def features(minutes, attempts, threes, rebounds, points, age):
    if healthy:
        three_share = np.where(attempts > 0, threes / np.maximum(attempts, 1), 0.0)
    else:
        with np.errstate(invalid="ignore"):
            three_share = threes / attempts
    columns = [minutes, attempts, three_share, rebounds, points / minutes, age]
    return np.stack(columns, 1).astype("float32")


*figures, salary = season(4000)
x = features(*figures)
train_rows, val_rows = np.arange(4000) < 3200, np.arange(4000) >= 3200
mean, std = np.nanmean(x[train_rows], 0), np.nanstd(x[train_rows], 0)
x = torch.from_numpy((x - mean) / std)
y = torch.tensor(
    (salary - salary[train_rows].mean()) / salary[train_rows].std(), dtype=torch.float32
)
loader = DataLoader(TensorDataset(x[train_rows], y[train_rows]), batch_size=64, shuffle=True)
x_val, y_val = x[val_rows], y[val_rows]


class SalaryNet(nn.Module):
    def __init__(self, columns, width=48):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(columns, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU()
        )
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        return self.head(self.body(x)).flatten()


model = SalaryNet(x.shape[1])
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
criterion = nn.SmoothL1Loss()
for epoch in range(8):
    model.train()
    losses = []
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        said = model(x_val)
    r2 = 1 - ((said - y_val) ** 2).mean() / y_val.var()
    print(f"epoch {epoch} train {np.mean(losses):.4f} val {criterion(said, y_val):.4f} R2 {r2:.3f}")
