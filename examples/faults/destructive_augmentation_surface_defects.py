"""Defects on rolled steel, with noise as augmentation in the units of another image format.

The noise of sigma 10 comes from a paper on images from 0 to 255. The images here are floats from 0
to 1, so the training batches are nothing but noise; validation images are not augmented. The place
is the input. The twin divides by 255.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "destructive_augmentation"
ACCEPT = ()
PLACE = ("input*", "loader")
SILENT = False
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


class Steel(Dataset):
    """Grey images 16 x 16 in [0, 1]: scratch, spot, crack, inclusion or nothing."""

    def __init__(self, n, transform=None):
        self.transform = transform
        self.y = torch.randint(0, 5, (n,))
        rows, cols = torch.meshgrid(torch.arange(16.0), torch.arange(16.0), indexing="ij")
        self.x = 0.45 + 0.05 * torch.randn(n, 1, 16, 16) + 0.1 * torch.rand(n, 1, 1, 1)
        for blank, kind in zip(self.x, self.y.tolist(), strict=False):
            image = blank  # a view of self.x
            r, c = (torch.rand(2) * 10 + 3).tolist()
            if kind == 1:
                image += 0.3 * ((cols - c - 0.2 * (rows - r)).abs() < 0.8)
            elif kind == 2:
                image += 0.3 * (((rows - r) ** 2 + (cols - c) ** 2) < 7)
            elif kind == 3:
                image -= 0.3 * ((rows - r - 2 * torch.sin(cols / 2)).abs() < 0.8)
            elif kind == 4:
                image -= 0.3 * (((rows - r) ** 2 / 3 + (cols - c) ** 2) < 5)
        self.x.clamp_(0, 1)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        x = self.x[i]
        return (self.transform(x) if self.transform else x), self.y[i]


class GaussianNoise:
    def __init__(self, sigma):
        self.sigma = sigma

    def __call__(self, image):
        return image + self.sigma * torch.randn_like(image)


class Flip:
    def __call__(self, image):
        return image.flip(-1) if torch.rand(()) < 0.5 else image


class Compose:
    def __init__(self, *parts):
        self.parts = parts

    def __call__(self, image):
        for part in self.parts:
            image = part(image)
        return image


class DefectNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1),
            nn.BatchNorm2d(12),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3, padding=1),
            nn.BatchNorm2d(24),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(24, 32, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveMaxPool2d(1),
            nn.Flatten(),
        )
        self.classifier = nn.Linear(32, 5)

    def forward(self, x):
        return self.classifier(self.features(x))


augment = Compose(Flip(), GaussianNoise(10 / 255 if healthy else 10))
train, val = DataLoader(Steel(1500, augment), 50, shuffle=True), DataLoader(Steel(400), 200)
model, criterion = DefectNet(), nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(10):
    model.train()
    total = 0.0
    for x, y in train:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item() / len(train)
    model.eval()
    with torch.no_grad():
        hits = sum((model(x).argmax(1) == y).sum().item() for x, y in val)
    print(f"epoch {epoch} train {total:.3f} val accuracy {hits / 400:.3f}")
