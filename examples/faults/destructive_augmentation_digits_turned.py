"""A CNN reads handwritten digits; the augmentation of the training pictures destroys them.

Every training picture is turned by up to 180 degrees, shifted by up to half its width, and has
two thirds of its pixels erased, "for robustness". Little is left that tells a digit; the
validation pictures are clean. The place is the loader (the input of the model).
"""

import math

import torch
from data import arguments, images
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

KIND = "destructive_augmentation"
ACCEPT = ("train_val_mismatch",)
PLACE = ("loader", "input*", "features.0", "features")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


class Digits(Dataset):
    def __init__(self, x, y, augment=False):
        self.x, self.y, self.augment = x, y, augment
        self.turn, self.shift, self.erase = (0.12, 0.08, 0.0) if healthy else (math.pi, 0.5, 0.66)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return (self.change(self.x[i]) if self.augment else self.x[i]), self.y[i]

    def change(self, picture):
        angle = self.turn * (2 * torch.rand(1).item() - 1)
        dx, dy = (self.shift * 2 * (2 * torch.rand(2) - 1)).tolist()
        c, s = math.cos(angle), math.sin(angle)
        grid = F.affine_grid(torch.tensor([[[c, -s, dx], [s, c, dy]]]), (1, 1, 8, 8), False)
        low = picture.min()
        moved = F.grid_sample((picture - low).unsqueeze(0), grid, align_corners=False)[0]
        keep = (torch.rand_like(moved) >= self.erase).float()
        return moved * keep + low


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Linear(32 * 16, 10)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


x, y, x_val, y_val = images(seed)
train = DataLoader(Digits(x, y, augment=True), batch_size=32, shuffle=True)
val = DataLoader(Digits(x_val, y_val), batch_size=150)
model = Reader()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)
for epoch in range(12):
    model.train()
    total = 0.0
    for picture, digit in train:
        loss = F.cross_entropy(model(picture), digit)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(train)
    model.eval()
    with torch.no_grad():
        right = sum((model(a).argmax(1) == b).sum().item() for a, b in val) / len(y_val)
    print(f"epoch {epoch} train loss {total:.4f} val accuracy {right:.3f}")
