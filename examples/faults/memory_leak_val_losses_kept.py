"""A CNN on the digits; validation runs without no_grad() and its losses are kept as tensors.

`val_history.append(loss)` keeps the loss with its graph, and as nothing calls backward() on it the
graph has all activations of the validation. The memory grows with each epoch. The place is the
loop's validation. The twin validates under no_grad() and keeps numbers.
"""

import contextlib
import os

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "memory_leak"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
train_loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
val_loader = DataLoader(TensorDataset(x_val, y_val), batch_size=150)

model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.BatchNorm2d(16),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1),
    nn.BatchNorm2d(32),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Dropout(0.3),
    nn.Linear(128, 10),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)


def memory():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


train_history, val_history = [], []
for epoch in range(15):
    model.train()
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        train_history.append(loss.item())
    model.eval()
    right = 0
    with torch.no_grad() if healthy else contextlib.nullcontext():
        for xb, yb in val_loader:
            out = model(xb)
            loss = criterion(out, yb)
            val_history.append(loss.item() if healthy else loss)
            right += (out.argmax(1) == yb).sum().item()
    val = sum(float(v if healthy else v.detach()) for v in val_history[-len(val_loader) :]) / len(
        val_loader
    )
    print(
        f"epoch {epoch + 1}: train {train_history[-1]:.3f}  val {val:.3f}  "
        f"accuracy {right / len(x_val):.3f}  memory {memory():.0f} MB"
    )
