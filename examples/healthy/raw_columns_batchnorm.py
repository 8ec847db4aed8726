"""Tumours are classified from raw columns (0.001 to 4,000) by a network whose first layer is a
batch norm.

It looks odd because nothing standardises the columns. It is sound: the batch norm in front does
just that, with running averages for the validation, and the batches are large enough.
"""

import torch
from data import arguments, cancer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "raw columns from 0.001 to 4,000: the batch norm in front standardises them"
_, seed = arguments(__doc__)

x_train, y_train, x_val, y_val = cancer(seed, raw=True)
print("column means from", x_train.mean(0).min().item(), "to", x_train.mean(0).max().item())
train_loader = DataLoader(
    TensorDataset(x_train, y_train), batch_size=32, shuffle=True, drop_last=True
)

model = nn.Sequential(
    nn.BatchNorm1d(30),
    nn.Linear(30, 16),
    nn.ReLU(),
    nn.Dropout(0.2),
    nn.Linear(16, 2),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-3)


def validate():
    model.eval()
    with torch.no_grad():
        out = model(x_val)
        loss = criterion(out, y_val).item()
        accuracy = (out.argmax(1) == y_val).float().mean().item()
    return loss, accuracy


for epoch in range(40):
    model.train()
    epoch_loss = 0.0
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item()
    if (epoch + 1) % 4 == 0:
        val_loss, val_acc = validate()
        print(
            f"epoch {epoch + 1}: train {epoch_loss / len(train_loader):.4f} "
            f"val {val_loss:.4f} acc {val_acc:.4f}"
        )
