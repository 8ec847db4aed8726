"""150 noisy images, a wide network, no early stop: the validation loss rises again after a few
epochs.

The training loss falls to nothing (silent). The place is the loop.
"""

import torch
from data import arguments, digits
from torch import nn

KIND = "overfit"
ACCEPT = ("overfitting",)
PLACE = ("loss*", "loop")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
pixels = x + 1.2 * torch.randn_like(x)
x_val = x_val + 1.2 * torch.randn_like(x_val)
model = nn.Sequential(
    nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
best, bad_epochs = float("inf"), 0
rows = 1300 if healthy else 150
for epoch in range(40):
    model.train()
    for batch in torch.randperm(rows).split(50 if not healthy else 130):
        optimizer.zero_grad()
        loss = criterion(model(pixels[batch]), y[batch])
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        val_loss = criterion(model(x_val), y_val).item()
    best, bad_epochs = (val_loss, 0) if val_loss < best else (best, bad_epochs + 1)
    if healthy and bad_epochs == 2:
        break
print(f"loss {loss.item():.3f}, validation {val_loss:.3f}, best {best:.3f}")
