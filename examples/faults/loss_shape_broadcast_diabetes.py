"""The targets are one column short: SmoothL1Loss is given (n, 1) and (n,) and compares all with
all.

What is learned is the middle of the targets; the loss falls a little and stays (PyTorch warns
once). The place is the loss. Exact: the shapes of its inputs differ.
"""

import torch
from data import arguments, diabetes
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "loss_shape_broadcast"
ACCEPT = ()
PLACE = ("loss*", "criterion*")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = diabetes(seed)
if healthy:
    y, y_val = y[:, None], y_val[:, None]

model = nn.Sequential(nn.Linear(10, 16), nn.Tanh(), nn.Linear(16, 1))
criterion = nn.SmoothL1Loss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
for epoch in range(25):
    model.train()
    for features, target in DataLoader(
        TensorDataset(x, y), batch_size=30, shuffle=True, drop_last=True
    ):
        optimizer.zero_grad()
        loss = criterion(model(features), target)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        val_loss = criterion(model(x_val), y_val)
print(f"loss {loss.item():.3f}, validation {val_loss.item():.3f}")
