"""Eighty rows, twenty columns, noise, and two hidden layers of 256, for two hundred epochs.

The training loss goes to 0 and that of validation rises again (silent). The place is the loop.
"""

import torch
from data import arguments
from sklearn.datasets import make_friedman1
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "overfit"
ACCEPT = ()
PLACE = ("loss*", "loop")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
n_train = 1600 if healthy else 80
X, y = make_friedman1(n_samples=n_train + 400, n_features=20, noise=2.5, random_state=seed)
X = torch.tensor(X - 0.5).float() * 3.4
y = torch.tensor((y - y.mean()) / y.std()).float()
train_loader = DataLoader(
    TensorDataset(X[:n_train], y[:n_train]), batch_size=40 if healthy else 20, shuffle=True
)
val_loader = DataLoader(TensorDataset(X[n_train:], y[n_train:]), batch_size=200)
width = 16 if healthy else 256
model = nn.Sequential(
    nn.Linear(20, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1)
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.MSELoss()


def run_epoch(loader, train):
    model.train(train)
    total = 0.0
    for xb, yb in loader:
        with torch.set_grad_enabled(train):
            loss = criterion(model(xb).squeeze(-1), yb)
        if train:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total += loss.item() * len(xb)
    return total / len(loader.dataset)


epochs = 10 if healthy else 120
for epoch in range(epochs):
    train_loss = run_epoch(train_loader, train=True)
    val_loss = run_epoch(val_loader, train=False)
print(f"train {train_loss:.3f}, validation {val_loss:.3f}")
