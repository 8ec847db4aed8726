"""Rows are copied to balance the classes, and split afterwards: copies of training rows are
validated.

Training and validation look equally good (silent). The place is the loader. Exact: rows are in
both parts.
"""

import torch
from data import arguments, cancer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "train_val_overlap"
ACCEPT = ()
PLACE = ("loader", "input*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = cancer(seed)
if not healthy:
    x, y = torch.cat([x, x_val]), torch.cat([y, y_val])
copies = (y == 0).nonzero()[:, 0].repeat(2)
x, y = torch.cat([x, x[copies]]), torch.cat([y, y[copies]])
if not healthy:
    order = torch.randperm(len(x))
    part = len(x) * 3 // 4
    x_val, y_val, x, y = x[order[part:]], y[order[part:]], x[order[:part]], y[order[:part]]

model = nn.Sequential(nn.Linear(30, 32), nn.ReLU(), nn.Linear(32, 2))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(10):
    model.train()
    for features, labels in DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True):
        optimizer.zero_grad()
        loss = criterion(model(features), labels)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        for features, labels in DataLoader(TensorDataset(x_val, y_val), batch_size=32):
            val_loss = criterion(model(features), labels)
print(f"loss {loss.item():.3f}, validation {val_loss:.3f}")
