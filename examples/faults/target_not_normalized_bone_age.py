"""A CNN learns the age of hands in raw months, 20 to 230, and is far from done at the end.

The person changed a classifier of a course to one output with MSELoss and left the ages in months.
The net spends the training on moving its bias towards 127, with a loss of thousands, and never
comes to the differences between the pictures. The place is the labels.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "target_not_normalized"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("labels", "loss", "head*", "model")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

SIZE = 20


def x_ray(months, rng):
    """Five bones; with age they grow and the gaps of the growth plates close."""
    picture = np.zeros((SIZE, SIZE))
    growth = months / 230
    length = round(6 + 9 * growth + rng.normal(0, 0.4))
    gap = 3.2 * (1 - growth) + rng.normal(0, 0.3)
    for finger in range(5):
        column = 2 + 4 * finger
        top = SIZE - 1 - max(length - abs(finger - 2), 3)
        picture[top:, column - 1 : column + 1] = 0.6 + 0.4 * growth
        plate = (top + SIZE) // 2
        whole = int(max(gap, 0))
        picture[plate : plate + whole, column - 1 : column + 1] = 0.1
        if plate + whole < SIZE:
            picture[plate + whole, column - 1 : column + 1] -= 0.5 * (max(gap, 0) - whole)
    shift = rng.integers(-1, 2)
    return np.roll(picture, shift, 1) * rng.uniform(0.85, 1.15) + rng.normal(0, 0.1, picture.shape)


class HandDataset(Dataset):
    def __init__(self, n, rng):
        self.months = np.clip(rng.normal(127, 42, n), 20, 230)
        images = np.stack([x_ray(months, rng) for months in self.months])
        self.images = torch.tensor(images, dtype=torch.float32).unsqueeze(1)
        self.target = torch.tensor(self.months, dtype=torch.float32).unsqueeze(1)

    def scale_images(self, mean, std):
        self.images = (self.images - mean) / std

    def scale_target(self, mean, std):
        self.target = (self.target - mean) / std

    def __len__(self):
        return len(self.target)

    def __getitem__(self, index):
        return self.images[index], self.target[index]


class BoneAgeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(24 * 25, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        return self.head(self.features(x))


rng = np.random.default_rng(19 + seed)
train_set, valid_set = HandDataset(1200, rng), HandDataset(300, rng)
pixels = train_set.images.mean(), train_set.images.std()
ages = (train_set.target.mean(), train_set.target.std()) if healthy else (0.0, 1.0)
for part in (train_set, valid_set):
    part.scale_images(*pixels)
    part.scale_target(*ages)
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
valid_loader = DataLoader(valid_set, batch_size=100)
model = BoneAgeNet()
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1.5e-4)

for epoch in range(8):
    model.train()
    train_loss = 0.0
    for images, target in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(images), target)
        loss.backward()
        optimizer.step()
        train_loss += loss.item() / len(train_loader)
    model.eval()
    predicted = []
    with torch.no_grad():
        for images, _ in valid_loader:
            predicted.append(model(images))
    months = (torch.cat(predicted) * ages[1] + ages[0]).squeeze(1).numpy()
    error = months - valid_set.months
    r2 = 1 - np.mean(error**2) / valid_set.months.var()
    print(
        f"Epoch {epoch + 1:2d} | loss {train_loss:10.4f} | valid MAE {np.abs(error).mean():.1f}"
        f" months | R2 {r2:.3f}"
    )
