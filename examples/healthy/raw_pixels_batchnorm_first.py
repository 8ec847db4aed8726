"""A CNN reads digits as raw pixels from 0 to 255; its first layer is a BatchNorm that scales them.

The statistics of the training set end up in the running mean and variance, so nothing has to be
done to the data before.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "the inputs are raw pixels of 0 to 255; a BatchNorm as the first layer normalises them"

_, seed = arguments(__doc__)
x_train, y_train, x_val, y_val = images(seed, raw=True)
x_train, x_val = (x_train * 15.9375).round(), (x_val * 15.9375).round()

model = nn.Sequential(
    nn.BatchNorm2d(1, affine=False),
    nn.Conv2d(1, 16, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Dropout(0.2),
    nn.Linear(128, 10),
)
loader = DataLoader(TensorDataset(x_train, y_train), batch_size=64, shuffle=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
criterion = nn.CrossEntropyLoss()
for epoch in range(20):
    model.train()
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(yb)
    schedule.step()
    if epoch % 4 == 3:
        model.eval()
        with torch.no_grad():
            out = model(x_val)
        acc = (out.argmax(1) == y_val).float().mean()
        print(
            f"epoch {epoch + 1}: train {total / len(y_train):.4f} "
            f"val {criterion(out, y_val):.4f} acc {acc:.3f}"
        )
