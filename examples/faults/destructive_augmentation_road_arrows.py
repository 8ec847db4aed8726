"""Reads the arrow painted on a lane; training images are mirrored, so left and right get mixed up.

The list of augmentations is the one that "always helps" on photographs and has been copied from
another project. A mirrored arrow to the left is an arrow to the right, but keeps its label.
The place is the augmentation of the training images.
The twin augments by shifts, brightness and noise only, which leave the meaning alone.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "destructive_augmentation"
ACCEPT = ("label_noise", "train_val_mismatch")
PLACE = ("input*", "loader")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
SIZE = 20
NAMES = ("left", "right", "ahead", "left+ahead", "right+ahead")


def paint(label, g):
    image = torch.zeros(SIZE, SIZE)
    column = int(torch.randint(7, 12, (1,), generator=g))
    top = int(torch.randint(2, 5, (1,), generator=g))
    bend = int(torch.randint(8, 11, (1,), generator=g))
    image[bend : SIZE - 2, column : column + 2] = 1
    if label >= 2:
        image[top:bend, column : column + 2] = 1
        for k in range(3):
            image[top + k, column - k : column + 2 + k] = 1
    if label in (0, 3):
        image[bend : bend + 2, 3:column] = 1
        for k in range(3):
            image[bend - k : bend + 2 + k, 3 + k] = 1
    if label in (1, 4):
        image[bend : bend + 2, column : SIZE - 3] = 1
        for k in range(3):
            image[bend - k : bend + 2 + k, SIZE - 4 - k] = 1
    worn = torch.rand(SIZE, SIZE, generator=g) > 0.2
    return image * worn + 0.25 * torch.randn(SIZE, SIZE, generator=g)


class Lanes(Dataset):
    def __init__(self, n, seed, transform=None):
        g = torch.Generator().manual_seed(seed)
        self.y = torch.randint(0, len(NAMES), (n,), generator=g)
        self.x = torch.stack([paint(int(label), g) for label in self.y])
        self.x = ((self.x - 0.15) / 0.4).unsqueeze(1)
        self.transform = transform

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        image = self.x[i]
        return (self.transform(image) if self.transform else image), self.y[i]


def shift(image):
    dx, dy = torch.randint(-1, 2, (2,)).tolist()
    return torch.roll(image, (dy, dx), (1, 2))


def brightness(image):
    return image * (0.8 + 0.4 * torch.rand(1)) + 0.2 * torch.randn(1)


def mirror(image):
    return image.flip(2) if torch.rand(1) < 0.5 else image


class Compose:
    def __init__(self, *steps):
        self.steps = steps

    def __call__(self, image):
        for step in self.steps:
            image = step(image)
        return image


augment = Compose(shift, brightness) if healthy else Compose(mirror, shift, brightness)
train = DataLoader(Lanes(1500, seed, augment), batch_size=50, shuffle=True)
valid = DataLoader(Lanes(500, seed + 777), batch_size=250)

model = nn.Sequential(
    nn.Conv2d(1, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(12, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(24 * 25, 48), nn.ReLU(), nn.Linear(48, len(NAMES)),
)  # fmt: skip
optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9, weight_decay=1e-4)
for epoch in range(8):
    model.train()
    seen = 0.0
    for image, label in train:
        loss = nn.functional.cross_entropy(model(image), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen += loss.item() * len(label)
    model.eval()
    with torch.no_grad():
        hits = torch.cat([model(image).argmax(1) == label for image, label in valid])
    print(f"epoch {epoch}: train loss {seen / 1500:.3f}, accuracy {hits.float().mean():.3f}")
