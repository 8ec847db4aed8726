"""A CNN on small grey images is validated on images that went through another transform.

The training images are divided by 255 and normalised by mean and standard deviation; the transform
for validation only divides by 255, as the second Compose was written before the first one got its
Normalize. The training goes well, the validation loss is poor from the first epoch. The twin uses
the same transform for both. The place is the input or the loader.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "train_val_mismatch"
ACCEPT = ()
PLACE = ("input*", "loader")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
MEAN, STD = 0.305, 0.376


def to_tensor(image):
    return image / 255


def to_normalised(image):
    return (image / 255 - MEAN) / STD


class Scans(Dataset):
    def __init__(self, pictures, labels, transform):
        self.pictures, self.labels, self.transform = pictures, labels, transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.transform(self.pictures[i].float()), self.labels[i]


x, y, x_val, y_val = images(seed, raw=True)
x, x_val = (x * 15.9375).round().to(torch.uint8), (x_val * 15.9375).round().to(torch.uint8)
train_transform = to_normalised
val_transform = to_normalised if healthy else to_tensor
train_loader = DataLoader(Scans(x, y, train_transform), batch_size=64, shuffle=True)
val_loader = DataLoader(Scans(x_val, y_val, val_transform), batch_size=225)

net = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.BatchNorm2d(16),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1),
    nn.BatchNorm2d(32),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(128, 10),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9, weight_decay=5e-4)

for epoch in range(12):
    net.train()
    running, seen = 0.0, 0
    for xb, yb in train_loader:
        loss = criterion(net(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item() * len(yb)
        seen += len(yb)
    net.eval()
    val_loss, right = 0.0, 0
    with torch.no_grad():
        for xb, yb in val_loader:
            out = net(xb)
            val_loss += criterion(out, yb).item() * len(yb)
            right += (out.argmax(1) == yb).sum().item()
    print(
        f"epoch {epoch}: train {running / seen:.4f} "
        f"val {val_loss / len(y_val):.4f} acc {right / len(y_val):.3f}"
    )
