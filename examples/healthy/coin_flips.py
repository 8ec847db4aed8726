"""Logistic regression of coin flips of a chance that depends a little on the row."""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "a linear model, a loss of 0.66 that hardly falls: nothing more is in the data"

_, seed = arguments(__doc__)
x = torch.randn(3000, 6)
chance = torch.sigmoid(0.35 * x[:, 0] - 0.3 * x[:, 1])
y = torch.bernoulli(chance)
train = DataLoader(TensorDataset(x[:2400], y[:2400]), batch_size=60, shuffle=True)
model = nn.Linear(6, 1)
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(10):
    for rows, answers in train:
        optimizer.zero_grad()
        loss = criterion(model(rows).squeeze(1), answers)
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        val_loss = criterion(model(x[2400:]).squeeze(1), y[2400:])
    print(f"epoch {epoch}: {loss.item():.3f}, val {val_loss.item():.3f}")
