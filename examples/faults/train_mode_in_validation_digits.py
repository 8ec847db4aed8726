"""Validation under no_grad(), but without model.eval(): dropout acts and batch norm counts the
images.

The place is the loop. Training goes well, what is measured is too bad (silent). Exact: the model
is in training mode in an evaluation.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "train_mode_in_validation"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
train_loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
val_loader = DataLoader(TensorDataset(x_val, y_val), batch_size=64)

model = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1),
    nn.BatchNorm2d(8),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(128, 48),
    nn.ReLU(),
    nn.Dropout(0.5),
    nn.Linear(48, 10),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(8):
    model.train()
    for pixels, labels in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(pixels), labels)
        loss.backward()
        optimizer.step()
    if healthy:
        model.eval()
    hits = 0
    with torch.no_grad():
        for pixels, labels in val_loader:
            scores = model(pixels)
            val_loss = criterion(scores, labels)
            hits += (scores.argmax(1) == labels).sum().item()
print(f"loss {loss.item():.3f}, accuracy {hits / len(y_val):.3f}")
