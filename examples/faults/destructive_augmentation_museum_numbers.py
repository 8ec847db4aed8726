"""Inventory numbers on museum labels (digits); the noise of the augmentation drowns the digit.

The noise of 3 grey levels was chosen when images went from 0 to 16. Later somebody put the
division by 16 into the dataset, ahead of the augmentation, and the noise stayed: it is now three
times as large as the whole range from white to black. The place is the input of the training
loader (the transform). The twin has the same noise in the new unit.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "destructive_augmentation"
ACCEPT = ("train_val_mismatch",)
PLACE = ("input*", "loader")
SILENT = False
EXACT = False
EARLY = True


class AddNoise:
    def __init__(self, sigma):
        self.sigma = sigma

    def __call__(self, image):
        return image + self.sigma * torch.randn_like(image)


class Shift:
    """By at most one pixel, as labels are cut out by hand."""

    def __call__(self, image):
        down, right = torch.randint(-1, 2, (2,)).tolist()
        return image.roll((down, right), (1, 2))


class Compose:
    def __init__(self, *transforms):
        self.transforms = transforms

    def __call__(self, image):
        for transform in self.transforms:
            image = transform(image)
        return image


class LabelPhotos(Dataset):
    def __init__(self, pictures, digits, transform=None):
        self.pictures, self.digits, self.transform = pictures, digits, transform

    def __len__(self):
        return len(self.digits)

    def __getitem__(self, i):
        image = self.pictures[i] / 16.0
        if self.transform is not None:
            image = self.transform(image)
        return image, self.digits[i]


class SmallCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Linear(32 * 16, 10)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


def evaluate(model, loader):
    model.eval()
    right = 0
    with torch.no_grad():
        for x, y in loader:
            right += (model(x).argmax(1) == y).sum().item()
    return right / len(loader.dataset)


def main():
    healthy, seed = arguments(__doc__)
    x, y, x_val, y_val = images(seed, raw=True)
    augment = Compose(Shift(), AddNoise(3.0 / 16.0 if healthy else 3.0))
    train_loader = DataLoader(LabelPhotos(x, y, augment), batch_size=32, shuffle=True)
    val_loader = DataLoader(LabelPhotos(x_val, y_val), batch_size=128)

    model = SmallCNN()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1.5e-3)
    for epoch in range(8):
        model.train()
        running = 0.0
        for inputs, labels in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(inputs), labels)
            loss.backward()
            optimizer.step()
            running += loss.item()
        print(
            f"[{epoch + 1}] loss {running / len(train_loader):.3f} "
            f"val acc {evaluate(model, val_loader):.3f}"
        )


if __name__ == "__main__":
    main()
