"""Digit scans: the images were read in the order of file names, the labels in that of numbers.

The images lie in files scan_0.png, scan_1.png, ..., which `sorted` puts in the order 0, 1, 10, 100.
The list of labels is in the order of the numbers. Nearly every image has the label of another.
The place is the loader (or the input). The twin sorts by number.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "label_misalignment"
ACCEPT = ("label_noise",)
PLACE = ("loader", "input*", "loss*")
SILENT = False
EXACT = False
EARLY = True


def number(name):
    return int(name.split("_")[1].split(".")[0])


class Scans(Dataset):
    """A folder of scans, here a dictionary from name to image, with the list of labels."""

    def __init__(self, folder, labels, key=None):
        self.folder = folder
        self.names = sorted(folder, key=key)
        self.labels = labels

    def __len__(self):
        return len(self.names)

    def __getitem__(self, i):
        return self.folder[self.names[i]], self.labels[i]


def accuracy(model, loader):
    model.eval()
    right = total = 0
    with torch.no_grad():
        for x, y in loader:
            right += (model(x).argmax(1) == y).sum().item()
            total += len(y)
    model.train()
    return right / total


def main():
    healthy, seed = arguments(__doc__)
    x, y, x_val, y_val = images(seed)
    key = number if healthy else None
    train = Scans({f"scan_{i}.png": image for i, image in enumerate(x)}, y, key)
    val = Scans({f"scan_{i}.png": image for i, image in enumerate(x_val)}, y_val, number)
    train_loader = DataLoader(train, batch_size=64, shuffle=True)
    val_loader = DataLoader(val, batch_size=225)
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(128, 10),
    )
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(10):
        total = 0.0
        for xb, yb in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(
            f"[{epoch}] loss {total / len(train_loader):.3f} "
            f"val accuracy {accuracy(model, val_loader):.3f}"
        )


main()
