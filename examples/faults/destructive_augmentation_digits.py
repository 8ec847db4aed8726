"""Augmentation made for photographs: random erasing, flips both ways, strong noise on images of 8
x 8.

A 6 is flipped to a 9, half of each image is gone. The training loss stays high, below guessing.
The place is the loader.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "destructive_augmentation"
ACCEPT = ("train_val_mismatch",)
PLACE = ("loader", "input*")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)


def augment(pixels):
    if healthy:
        return pixels + 0.1 * torch.randn_like(pixels)
    if torch.rand(()) < 0.5:
        pixels = pixels.flip(2)
    if torch.rand(()) < 0.5:
        pixels = pixels.flip(3)
    pixels = pixels + 1.5 * torch.randn_like(pixels)
    left, top = torch.randint(0, 4, (2,)).tolist()
    pixels[:, :, top : top + 5, left : left + 5] = 0
    return pixels


model = nn.Sequential(
    nn.Conv2d(1, 12, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(192, 48),
    nn.ReLU(),
    nn.Linear(48, 10),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(10):
    model.train()
    for pixels, labels in DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True):
        optimizer.zero_grad()
        loss = criterion(model(augment(pixels)), labels)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        val_loss = criterion(model(x_val), y_val)
print(f"loss {loss.item():.3f}, validation {val_loss:.3f}")
