"""Regression of an illness with ten measurements: three layers of 256 for 331 patients, 120 epochs.

The training error goes to zero while the validation error, best within the first epochs, rises to
well above the variance explained by a straight line; the last epoch is what is kept. The place is
the model.
"""

import copy

import torch
from data import arguments, diabetes
from torch import nn

KIND = "overfit"
ACCEPT = ()
PLACE = ("",)
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = diabetes(seed)
HIDDEN = 16 if healthy else 256
DROPOUT, DECAY = (0.2, 1e-2) if healthy else (0.0, 0.0)
EPOCHS = 30 if healthy else 120


def block(a, b):
    return nn.Sequential(nn.Linear(a, b), nn.SiLU(), nn.Dropout(DROPOUT))


regressor = nn.Sequential(
    block(10, HIDDEN), block(HIDDEN, HIDDEN), block(HIDDEN, HIDDEN), nn.Linear(HIDDEN, 1)
)
criterion = nn.MSELoss()
optimizer = torch.optim.AdamW(regressor.parameters(), lr=2e-3, weight_decay=DECAY)
best, best_state = float("inf"), None
for epoch in range(EPOCHS):
    regressor.train()
    train_loss = 0.0
    for rows in torch.randperm(len(x)).split(42):
        prediction = regressor(x[rows]).squeeze(1)
        loss = criterion(prediction, y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        train_loss += loss.item() * len(rows) / len(x)
    regressor.eval()
    with torch.no_grad():
        val_loss = criterion(regressor(x_val).squeeze(1), y_val).item()
    if val_loss < best:
        best, best_state = val_loss, copy.deepcopy(regressor.state_dict())
    elif healthy and epoch > 20 and val_loss > 1.1 * best:
        break
if healthy:
    regressor.load_state_dict(best_state)
    regressor.eval()
    with torch.no_grad():
        val_loss = criterion(regressor(x_val).squeeze(1), y_val).item()
print(f"loss {train_loss:.3f}, validation loss {val_loss:.3f}")
