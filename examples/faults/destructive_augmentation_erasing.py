"""A CNN reads 8x8 digits with noise and random erasing; both are set so strong that the digits
are gone.

The values were copied from a recipe for large photos: a square of 6x6 out of 8x8 pixels is wiped
and the noise is stronger than the pixels. Training inputs look nothing like the validation
inputs. The place is the training input.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "destructive_augmentation"
ACCEPT = ("train_val_mismatch",)
PLACE = ("input*", "loader")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

PATCH = 2 if healthy else 6
NOISE = 0.1 if healthy else 1.5

x_train, y_train, x_val, y_val = images(seed)


class DigitsDataset(Dataset):
    def __init__(self, x, y, augment):
        self.x, self.y, self.augment = x, y, augment

    def __len__(self):
        return len(self.y)

    def __getitem__(self, index):
        image = self.x[index].clone()
        if self.augment:
            image += NOISE * torch.randn_like(image)
            top, left = torch.randint(0, 8 - PATCH + 1, (2,)).tolist()
            image[:, top : top + PATCH, left : left + PATCH] = 0.0
        return image, self.y[index]


train_loader = DataLoader(DigitsDataset(x_train, y_train, True), batch_size=32, shuffle=True)
val_loader = DataLoader(DigitsDataset(x_val, y_val, False), batch_size=150)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Linear(32 * 2 * 2, 10)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


def train_one_epoch(model, loader, criterion, optimizer):
    model.train()
    total = 0.0
    for image, label in loader:
        optimizer.zero_grad()
        loss = criterion(model(image), label)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(label)
    return total / len(loader.dataset)


def validate(model, loader, criterion):
    model.eval()
    total, correct = 0.0, 0
    with torch.no_grad():
        for image, label in loader:
            out = model(image)
            total += criterion(out, label).item() * len(label)
            correct += (out.argmax(1) == label).sum().item()
    return total / len(loader.dataset), correct / len(loader.dataset)


model = Net()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.RMSprop(model.parameters(), lr=5e-4)
for epoch in range(12):
    train_loss = train_one_epoch(model, train_loader, criterion, optimizer)
    val_loss, val_acc = validate(model, val_loader, criterion)
    print(f"[{epoch + 1:02d}] train {train_loss:.4f} | val {val_loss:.4f} | acc {val_acc:.3f}")
