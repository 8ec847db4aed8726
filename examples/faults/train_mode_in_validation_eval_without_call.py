"""Tumours with batch norm and strong dropout; the validation says `model.eval` without the
parentheses.

Nothing is called, so validation runs with dropout on, and moves the running statistics of the batch
norms. The training loss falls all the same; the validation is too bad and noisy. The place is the
loop. Exact.
"""

import torch
from data import arguments, cancer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "train_mode_in_validation"
ACCEPT = ()
PLACE = ("loop", "", "*")
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)


def build(features):
    layers = []
    for width in (64, 32):
        layers += [nn.Linear(features, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(0.5)]
        features = width
    return nn.Sequential(*layers, nn.Linear(features, 1))


def train(model, loader, criterion, optimizer):
    model.train()
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x).squeeze(1), y)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(x)
    return total / len(loader.dataset)


def validate(model, loader, criterion):
    if healthy:
        model.eval()
    else:
        model.eval  # noqa: B018
    total, right = 0.0, 0
    with torch.no_grad():
        for x, y in loader:
            out = model(x).squeeze(1)
            total += criterion(out, y).item() * len(x)
            right += ((out > 0) == (y > 0.5)).sum().item()
    return total / len(loader.dataset), right / len(loader.dataset)


x, y, x_val, y_val = cancer(seed)
train_loader = DataLoader(TensorDataset(x, y.float()), batch_size=32, shuffle=True, drop_last=True)
val_loader = DataLoader(TensorDataset(x_val, y_val.float()), batch_size=16)
model = build(x.size(1))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(20):
    train_loss = train(model, train_loader, criterion, optimizer)
    val_loss, accuracy = validate(model, val_loader, criterion)
    print(
        f"Epoch {epoch + 1}/20 - loss {train_loss:.4f} - val_loss {val_loss:.4f} - "
        f"val_acc {accuracy:.3f}"
    )
