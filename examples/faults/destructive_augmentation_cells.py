"""A CNN tells four kinds of drawn blood cells apart; the training images are almost destroyed by
the augmentation.

The lab's script adds strong noise, random inversion of contrast and black boxes to every training
picture, so that little of the cell is left to be seen; validation pictures are untouched. The
place is the input of the training.
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "destructive_augmentation"
ACCEPT = ("train_val_mismatch",)
PLACE = ("input*", "loader")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

SIDE = 20
g = torch.Generator().manual_seed(80 + seed)
line = torch.linspace(-1, 1, SIDE)
v, u = torch.meshgrid(line, line, indexing="ij")


def uniform(n, low, high):
    return low + (high - low) * torch.rand(n, 1, 1, generator=g)


def cells(n):
    """0: disc, 1: disc with a nucleus, 2: sickle, 3: lobed."""
    y = torch.randint(0, 4, (n,), generator=g)
    du, dv = u - uniform(n, -0.2, 0.2), v - uniform(n, -0.2, 0.2)
    radius, angle = uniform(n, 0.42, 0.7), uniform(n, 0, 2 * math.pi)
    rho, phi = (du**2 + dv**2).sqrt(), torch.atan2(dv, du) + angle
    disc = torch.sigmoid((radius - rho) * 14)
    nucleus = disc * (1 - 0.8 * torch.sigmoid((0.45 * radius - rho) * 16))
    off_u, off_v = du + 0.4 * radius * angle.cos(), dv + 0.4 * radius * angle.sin()
    sickle = disc * torch.sigmoid(((off_u**2 + off_v**2).sqrt() - 0.75 * radius) * 16)
    lobed = torch.sigmoid((radius * (0.8 + 0.3 * torch.cos(3 * phi)) - rho) * 14)
    shapes = torch.stack([disc, nucleus, sickle, lobed])[y, torch.arange(n)]
    x = uniform(n, 0.5, 1.1) * shapes + 0.25 * torch.randn(n, SIDE, SIDE, generator=g)
    return x.unsqueeze(1), y


def augment(x):
    if torch.rand(1) < 0.5:
        x = x.flip(-1)
    x = x + (0.05 if healthy else 1.0) * torch.randn_like(x)
    box = 3 if healthy else 12
    top, left = torch.randint(0, SIDE - box + 1, (2,)).tolist()
    x[..., top : top + box, left : left + box] = 0.0
    return x


x, y = cells(1200)
x_val, y_val = cells(400)
mean, std = x.mean(), x.std()
x, x_val = (x - mean) / std, (x_val - mean) / std

model = nn.Sequential(
    nn.Conv2d(1, 12, 3, padding=1),
    nn.BatchNorm2d(12),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(12, 24, 3, padding=1),
    nn.BatchNorm2d(24),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(24 * 25, 4),
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)
EPOCHS = 8
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
for epoch in range(EPOCHS):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(x)).split(32):
        xb = torch.stack([augment(image.clone()) for image in x[rows]])
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(xb), y[rows])
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    schedule.step()
    model.eval()
    with torch.no_grad():
        out = model(x_val)
    val = nn.functional.cross_entropy(out, y_val).item()
    accuracy = (out.argmax(1) == y_val).float().mean().item()
    print(f"epoch {epoch} train {total / len(x):.3f} val {val:.3f} accuracy {accuracy:.3f}")
