"""A CNN tells drawn shapes apart; the transform is given to the training set and forgotten for
the validation set.

The custom Dataset takes an optional transform (scale to 0..1, then normalise). The writer builds
the validation dataset without it, so the network is validated on raw 0..255 pixels. The place is
the validation input.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "train_val_mismatch"
ACCEPT = ("input_not_normalized",)
PLACE = ("input*", "loader")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

SIZE = 20
CLASSES = ["circle", "square", "cross", "triangle"]


def draw(kind, rng):
    yy, xx = np.mgrid[0:SIZE, 0:SIZE].astype(float)
    cy, cx = rng.uniform(7, 13, 2)
    r = rng.uniform(3.5, 6.5)
    dx, dy = xx - cx, yy - cy
    if kind == 0:
        mask = np.abs(np.hypot(dx, dy) - r) < 0.9
    elif kind == 1:
        mask = np.abs(np.maximum(abs(dx), abs(dy)) - r) < 0.9
    elif kind == 2:
        mask = (np.minimum(abs(dx), abs(dy)) < 0.9) & (np.maximum(abs(dx), abs(dy)) < r)
    else:
        mask = np.abs(np.maximum(dy, 2 * abs(dx) * 0.87 - dy) - r * 0.7) < 0.9
    image = rng.uniform(20, 70) + rng.uniform(60, 150) * mask + rng.normal(0, 25, (SIZE, SIZE))
    return np.clip(image, 0, 255).astype(np.uint8)


class ShapesDataset(Dataset):
    def __init__(self, n, rng, transform=None):
        self.labels = rng.integers(0, len(CLASSES), n)
        self.images = [draw(k, rng) for k in self.labels]
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        image = torch.tensor(self.images[i], dtype=torch.float32).unsqueeze(0)
        if self.transform is not None:
            image = self.transform(image)
        return image, int(self.labels[i])


def normalise(image):
    return (image / 255.0 - 0.24) / 0.2


rng = np.random.default_rng(seed)
train_set = ShapesDataset(1500, rng, transform=normalise)
val_set = ShapesDataset(500, rng, transform=normalise if healthy else None)
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
val_loader = DataLoader(val_set, batch_size=100)


class ShapeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.fc1 = nn.Linear(16 * 5 * 5, 32)
        self.fc2 = nn.Linear(32, len(CLASSES))

    def forward(self, x):
        x = self.pool(torch.relu(self.conv1(x)))
        x = self.pool(torch.relu(self.conv2(x)))
        x = torch.relu(self.fc1(x.flatten(1)))
        return self.fc2(x)


net = ShapeNet()
loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)

for epoch in range(10):
    net.train()
    train_loss = 0
    for images, labels in train_loader:
        optimizer.zero_grad()
        loss = loss_fn(net(images), labels)
        loss.backward()
        optimizer.step()
        train_loss += loss.item()

    net.eval()
    val_loss, right = 0, 0
    with torch.no_grad():
        for images, labels in val_loader:
            out = net(images)
            val_loss += loss_fn(out, labels).item()
            right += (out.argmax(1) == labels).sum().item()
    print(
        f"epoch {epoch + 1}: train loss {train_loss / len(train_loader):.3f}, "
        f"val loss {val_loss / len(val_loader):.3f}, val accuracy {right / len(val_set):.3f}"
    )
