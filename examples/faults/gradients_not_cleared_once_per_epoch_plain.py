"""Trains a regression MLP on house prices with zero_grad() called once per epoch and not before
each batch.

The gradients of all batches of an epoch add up, so that each step goes along the sum of all
gradients since the epoch began, most of them out of date. The loss swings wider and wider. The twin
clears the gradients before each backward pass. The place is the optimizer or the loop.
"""

import torch
from data import arguments, houses
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "gradients_not_cleared"
ACCEPT = ()
PLACE = ("optimizer", "loop")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

x, y, x_val, y_val = houses(seed, n=3000)
y, y_val = y.unsqueeze(1), y_val.unsqueeze(1)
loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)

model = nn.Sequential(nn.Linear(6, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
criterion = nn.MSELoss()

for epoch in range(20):
    model.train()
    epoch_loss = 0.0
    optimizer.zero_grad()
    for xb, yb in loader:
        if healthy:
            optimizer.zero_grad()
        pred = model(xb)
        loss = criterion(pred, yb)
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item()
    if epoch % 2 == 1:
        model.eval()
        with torch.no_grad():
            val = criterion(model(x_val), y_val).item()
        print(f"Epoch {epoch + 1}/20 - loss: {epoch_loss / len(loader):.4f} - val_loss: {val:.4f}")
