"""Scanned digits, CNN: the training transform divides by 16, the validation transform does not.

`make_transform(train)` builds two lists of steps; when the random shift was added, the scaling
went into the branch of training together with it. Validation pictures arrive with pixels of 0 to
16 and are judged by a network that knows 0 to 1. The place is the input of the validation. The
twin scales in both.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "train_val_mismatch"
ACCEPT = ()
PLACE = ("input", "data")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def scale(picture):
    return picture / 16.0


def random_shift(picture):
    return torch.roll(picture, int(torch.randint(-1, 2, ())), dims=-1)


def make_transform(train):
    steps = []
    if train:
        steps += [scale, random_shift]
    elif healthy:
        steps += [scale]

    def transform(picture):
        for step in steps:
            picture = step(picture)
        return picture

    return transform


class Scans(Dataset):
    def __init__(self, pictures, labels, transform):
        self.pictures, self.labels, self.transform = pictures, labels, transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.transform(self.pictures[i]), self.labels[i]


x, y, x_val, y_val = images(seed, raw=True)
train = DataLoader(Scans(x, y, make_transform(train=True)), batch_size=64, shuffle=True)
val = DataLoader(Scans(x_val, y_val, make_transform(train=False)), batch_size=150)

model = nn.Sequential(
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
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(14):
    model.train()
    total = 0.0
    for xb, yb in train:
        loss = nn.functional.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(train)
    model.eval()
    val_loss = hits = 0
    with torch.no_grad():
        for xb, yb in val:
            logits = model(xb)
            val_loss += nn.functional.cross_entropy(logits, yb).item() / len(val)
            hits += (logits.argmax(1) == yb).sum().item()
    print(f"epoch {epoch:2d} loss {total:.3f} val {val_loss:.3f} accuracy {hits / len(y_val):.3f}")
