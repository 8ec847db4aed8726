"""Digits by a CNN and SGD, stopped after three epochs.

The loss is still falling steeply when the training ends; with ten times as many epochs the same
program gets nearly everything right. The place is the loop.
"""

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "stopped_too_early"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
EPOCHS = 30 if healthy else 3
x, y, x_val, y_val = images(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
model = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(8, 16, 3, padding=1),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(256, 10),
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.8)
for epoch in range(EPOCHS):
    for img, lab in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(img), lab)
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        out = model(x_val)
    acc = (out.argmax(1) == y_val).float().mean().item()
    print(f"epoch {epoch}: val loss {F.cross_entropy(out, y_val).item():.3f} accuracy {acc:.3f}")
