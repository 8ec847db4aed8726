"""ReduceLROnPlateau(mode="max") watches a loss: each epoch that is better counts as a bad one.

The rate is halved again and again while the loss still falls (silent). The place is the optimizer.
"""

import torch
from data import arguments
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader, TensorDataset

KIND = "schedule_collapsed"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("optimizer", "learning_rate*")
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)
digits = load_digits()
x = torch.tensor(digits.data / 16).float()
x_train, x_val, y_train, y_val = train_test_split(x, torch.tensor(digits.target), random_state=seed)
train_loader = DataLoader(TensorDataset(x_train, y_train), batch_size=64, shuffle=True)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
scheduler = ReduceLROnPlateau(optimizer, mode="min" if healthy else "max", factor=0.2, patience=0)
criterion = nn.CrossEntropyLoss()
for epoch in range(14):
    model.train()
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        val_loss = criterion(model(x_val), y_val).item()
    scheduler.step(val_loss)
print(f"val loss {val_loss:.3f}, rate {optimizer.param_groups[0]['lr']:.1e}")
