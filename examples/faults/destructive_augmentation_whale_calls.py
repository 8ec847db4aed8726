"""Calls of whales in small spectrograms; the augmentation plays half of them backwards.

A transform list was copied from a photo project: mirror, shift, noise. For photos mirroring
is harmless; in a spectrogram it turns time round, and a rising call becomes a falling one while
its label stays. The model cannot tell those classes apart any more.
The place is the input, in the transform of the training set.
The twin only shifts and adds noise.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "destructive_augmentation"
ACCEPT = ("label_noise",)
PLACE = ("input*", "loader")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
CALLS = ["rising", "falling", "flat", "arch"]


def spectrogram(kind, g):
    t = torch.linspace(0, 1, 24)
    low = 2 + 3 * torch.rand(1, generator=g)
    span = 6 + 3 * torch.rand(1, generator=g)
    if kind == 0:
        line = low + span * t
    elif kind == 1:
        line = low + span * (1 - t)
    elif kind == 2:
        line = low + span / 2 + 0 * t
    else:
        line = low + span * 4 * t * (1 - t)
    f = torch.arange(16.0)[:, None]
    power = torch.exp(-0.5 * ((f - line) / 0.9) ** 2)
    return power + 0.35 * torch.randn(16, 24, generator=g).abs()


class Mirror:
    def __call__(self, image):
        return image.flip(-1) if torch.rand(1) < 0.5 else image


class Shift:
    def __call__(self, image):
        return image.roll(int(torch.randint(-1, 2, (1,))), -2)


class Noise:
    def __call__(self, image):
        return image + 0.1 * torch.randn_like(image)


class Calls(Dataset):
    def __init__(self, n, seed, transforms=()):
        g = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(0, len(CALLS), (n,), generator=g)
        self.images = torch.stack([spectrogram(int(k), g) for k in self.labels])
        self.images = (self.images - 0.4) / 0.35
        self.transforms = transforms

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        image = self.images[i]
        for transform in self.transforms:
            image = transform(image)
        return image[None], self.labels[i]


transforms = [Shift(), Noise()] if healthy else [Mirror(), Shift(), Noise()]
train_loader = DataLoader(Calls(1000, seed, transforms), batch_size=32, shuffle=True)
val_loader = DataLoader(Calls(400, seed + 100), batch_size=200)

net = nn.Sequential(
    nn.Conv2d(1, 12, 3, padding=1),
    nn.BatchNorm2d(12),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(12, 24, 3, padding=1),
    nn.BatchNorm2d(24),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(24 * 4 * 6, len(CALLS)),
)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)

for epoch in range(6):
    net.train()
    total = 0.0
    for image, label in train_loader:
        loss = nn.functional.cross_entropy(net(image), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(train_loader)
    net.eval()
    with torch.no_grad():
        right = sum((net(image).argmax(1) == label).sum().item() for image, label in val_loader)
    print(f"epoch {epoch + 1}: loss {total:.3f}, validation accuracy {right / 400:.3f}")
