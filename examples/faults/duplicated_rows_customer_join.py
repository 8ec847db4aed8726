"""Churn of telecom customers: a join has put some customers into the training table many times.

The customer table was joined with the table of service tickets for one column, and a customer with
fifty tickets became fifty rows. The few who complain a lot now make up most of the training set,
and the network learns them by heart.
The place is the loader (or the input). The twin drops the doubles after the join.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "duplicated_rows"
ACCEPT = ("overfit",)
PLACE = ("loader", "input*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
r = np.random.default_rng(seed)


def customer_table(n):
    table = r.normal(size=(n, 10))
    score = 1.4 * table[:, 0] - 1.1 * table[:, 1] + table[:, 2] * table[:, 3] + 0.7 * table[:, 4]
    churn = r.random(n) < 1 / (1 + np.exp(-1.5 * score))
    return table, churn.astype(int)


customers, churned = customer_table(900)
tickets = []
for customer in range(len(customers)):
    many = 60 if r.random() < 0.06 else 1
    tickets += [(customer, "open") for _ in range(many)]
key = np.array([customer for customer, _ in tickets])
if healthy:
    key = np.unique(key)
x, y = customers[key], churned[key]
x_val, y_val = customer_table(1500)

mean, std = customers.mean(0), customers.std(0)
x = torch.tensor((x - mean) / std, dtype=torch.float32)
x_val = torch.tensor((x_val - mean) / std, dtype=torch.float32)
y, y_val = torch.tensor(y), torch.tensor(y_val)
print(f"{len(x)} training rows")

loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss()
steps = 0
while steps < 600:
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        steps += 1
        if steps % 100 == 0:
            model.eval()
            with torch.no_grad():
                out = model(x_val)
                val, right = criterion(out, y_val), (out.argmax(1) == y_val).float().mean()
            model.train()
            print(f"step {steps} train {loss.item():.3f} val {val.item():.3f} acc {right:.3f}")
        if steps == 600:
            break
