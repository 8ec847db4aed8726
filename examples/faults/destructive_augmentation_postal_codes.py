"""A CNN reads the digits of postal codes; the augmentation destroys nearly all of each picture.

The training pictures are turned by any angle, erased over more than half of their area and buried
in noise, so that little of the digit is left; the validation pictures are whole. The place is the
augmentation, on the way to the input.
"""

import math

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "destructive_augmentation"
ACCEPT = ("train_val_mismatch",)
PLACE = ("loader", "input*")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

STRENGTH = (
    {"angle": 8, "erase": 2, "noise": 0.1} if healthy else {"angle": 180, "erase": 6, "noise": 1.0}
)


class Augment:
    def __init__(self, angle, erase, noise):
        self.angle, self.erase, self.noise = angle, erase, noise

    def __call__(self, images):
        n = len(images)
        a = (torch.rand(n) * 2 - 1) * self.angle * math.pi / 180
        zero = torch.zeros(n)
        theta = torch.stack(
            [torch.stack([a.cos(), -a.sin(), zero], 1), torch.stack([a.sin(), a.cos(), zero], 1)], 1
        )
        grid = F.affine_grid(theta, list(images.shape), align_corners=False)
        images = F.grid_sample(images, grid, padding_mode="border", align_corners=False)
        top, left = torch.randint(0, 9 - self.erase, (2, n)).tolist()
        for i in range(n):
            images[i, :, top[i] : top[i] + self.erase, left[i] : left[i] + self.erase] = 0
        return images + self.noise * torch.randn_like(images)


class PostalDigits(Dataset):
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


x, y, x_val, y_val = images(seed)
augment = Augment(**STRENGTH)


def collate(samples):
    xs, ys = zip(*samples, strict=False)
    return augment(torch.stack(xs)), torch.stack(ys)


train_dl = DataLoader(PostalDigits(x, y), batch_size=32, shuffle=True, collate_fn=collate)
valid_dl = DataLoader(PostalDigits(x_val, y_val), batch_size=150)

model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.ReLU(),
    nn.Conv2d(16, 32, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(512, 64),
    nn.ReLU(),
    nn.Linear(64, 10),
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

for epoch in range(12):
    model.train()
    train_loss = 0.0
    for xb, yb in train_dl:
        loss = F.cross_entropy(model(xb), yb)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        train_loss += loss.item() / len(train_dl)
    model.eval()
    with torch.no_grad():
        logits = torch.cat([model(xb) for xb, _ in valid_dl])
    acc = (logits.argmax(1) == y_val).float().mean()
    print(
        f"{epoch:2d} train {train_loss:.3f} valid {F.cross_entropy(logits, y_val):.3f} acc {acc:.3f}"  # noqa: E501
    )
