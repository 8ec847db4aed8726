"""The training images are standardised, the validation images are left at 0 to 16.

Training goes well (silent); the validation loss is bad from the first epoch on. The place is the
loader of the validation data.
"""

import torch
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "train_val_mismatch"
ACCEPT = ()
PLACE = ("loader", "input*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
if not healthy:
    _, _, x_val, y_val = digits(seed, raw=True)
train_loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
val_loader = DataLoader(TensorDataset(x_val, y_val), batch_size=128)

model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(9):
    model.train()
    for images, labels in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        losses = [criterion(model(images), labels).item() for images, labels in val_loader]
print(f"loss {loss.item():.3f}, validation {sum(losses) / len(losses):.3f}")
