"""Ripeness of tomatoes by their colour, trained with a jitter of the hue all around the circle.

The line ColorJitter(0.3, 0.3, 0.3, hue=0.5) came along with a recipe for object recognition. Here
the hue is the label: green, breaker, orange or red. The place is the loader. The twin keeps the
jitter of brightness and contrast and turns the hue by a few degrees only.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "destructive_augmentation"
ACCEPT = ("train_val_mismatch", "label_noise")
PLACE = ("loader", "input*")
SILENT = True
EXACT = False
EARLY = True

TO_YIQ = torch.tensor([[0.299, 0.587, 0.114], [0.596, -0.274, -0.322], [0.211, -0.523, 0.312]])
RIPENESS = ("green", "breaker", "orange", "red")
COLOUR = torch.tensor(
    [[0.35, 0.60, 0.20], [0.58, 0.52, 0.20], [0.72, 0.42, 0.18], [0.82, 0.28, 0.18]]
)


def photograph(n, side=16):
    label = torch.randint(0, 4, (n,))
    grid = torch.linspace(-1, 1, side)
    yy, xx = torch.meshgrid(grid, grid, indexing="ij")
    centre = 0.25 * torch.randn(n, 2)
    radius = 0.45 + 0.25 * torch.rand(n)
    distance = ((xx - centre[:, :1, None]) ** 2 + (yy - centre[:, 1:, None]) ** 2).sqrt()
    fruit = torch.sigmoid((radius[:, None, None] - distance) * 14).unsqueeze(1)
    shade = (1 - 0.5 * (distance / radius[:, None, None]) ** 2).clamp(0.3).unsqueeze(1)
    colour = COLOUR[label] + 0.04 * torch.randn(n, 3)
    leaves = torch.tensor([0.25, 0.35, 0.2])[None, :, None, None] * torch.rand(n, 1, side, side)
    picture = fruit * shade * colour[:, :, None, None] + (1 - fruit) * leaves
    light = 0.6 + 0.7 * torch.rand(n, 1, 1, 1)
    return (picture * light + 0.03 * torch.randn_like(picture)).clamp(0, 1), label


class ColorJitter:
    def __init__(self, brightness, contrast, hue):
        self.brightness, self.contrast, self.hue = brightness, contrast, hue

    def __call__(self, image):
        image = image * (1 + self.brightness * (2 * torch.rand(()) - 1))
        mean = image.mean()
        image = (image - mean) * (1 + self.contrast * (2 * torch.rand(()) - 1)) + mean
        angle = float(2 * torch.rand(()) - 1) * self.hue * 2 * math.pi
        cos, sin = math.cos(angle), math.sin(angle)
        turn = torch.tensor([[1.0, 0, 0], [0, cos, -sin], [0, sin, cos]])
        matrix = torch.linalg.inv(TO_YIQ) @ turn @ TO_YIQ
        return torch.einsum("dc,chw->dhw", matrix, image).clamp(0, 1)


class Tomatoes(Dataset):
    def __init__(self, n, transform=None):
        self.images, self.labels = photograph(n)
        self.transform = transform

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        image = self.images[i]
        if self.transform:
            image = self.transform(image)
        return (image - 0.4) / 0.25, self.labels[i]


def block(c_in, c_out):
    conv = nn.Conv2d(c_in, c_out, 3, padding=1)
    return nn.Sequential(conv, nn.BatchNorm2d(c_out), nn.ReLU(), nn.MaxPool2d(2))


healthy, seed = arguments(__doc__)
jitter = ColorJitter(0.3, 0.3, hue=0.02 if healthy else 0.5)
train = DataLoader(Tomatoes(1200, jitter), batch_size=32, shuffle=True, drop_last=True)
val = DataLoader(Tomatoes(400), batch_size=200)
net = nn.Sequential(block(3, 16), block(16, 32), nn.Flatten(), nn.Linear(32 * 16, 4))
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(6):
    net.train()
    losses = []
    for image, label in train:
        optimizer.zero_grad()
        loss = criterion(net(image), label)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    net.eval()
    with torch.no_grad():
        hits = torch.cat([net(image).argmax(1) == label for image, label in val])
    print(f"epoch {epoch}: loss {sum(losses) / len(losses):.3f}, val {hits.float().mean():.3f}")
