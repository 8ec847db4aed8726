"""Digits by a CNN; the scaling sits in the branch of the training set, with the augmentation.

`if train: transform = Compose([shift, noise, scale])`: the scale moved along when the augmentation
was put under the condition. Validation images keep their 0 to 16, and the numbers say the network
is worse than it is (and so will the product's). The place is the input of validation. The twin
scales in both.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "train_val_mismatch"
ACCEPT = ("input_not_normalized",)
PLACE = ("input", "data")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def shift(image):
    return image.roll(int(torch.randint(-1, 2, (1,))), -1)


def noise(image):
    return image + torch.randn_like(image)


def scale(image):
    return (image - 4.9) / 6.0


def compose(*steps):
    def apply(image):
        for step in steps:
            image = step(image)
        return image

    return apply


class DigitSet(Dataset):
    def __init__(self, images, labels, train):
        self.images, self.labels = images, labels
        if train:
            self.transform = compose(shift, noise, scale)
        else:
            self.transform = scale if healthy else None

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = self.images[index]
        return (self.transform(image) if self.transform else image), self.labels[index]


x, y, x_val, y_val = images(seed, raw=True)
train_loader = DataLoader(DigitSet(x, y, train=True), batch_size=48, shuffle=True)
val_loader = DataLoader(DigitSet(x_val, y_val, train=False), batch_size=150)
model = nn.Sequential(
    nn.Conv2d(1, 12, 3, padding=1),
    nn.BatchNorm2d(12),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(12, 24, 3, padding=1),
    nn.BatchNorm2d(24),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(24 * 16, 10),
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss()

for epoch in range(10):
    model.train()
    train_loss = 0.0
    for image, digit in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(image), digit)
        loss.backward()
        optimizer.step()
        train_loss += loss.item() / len(train_loader)
    model.eval()
    val_loss = right = 0.0
    with torch.no_grad():
        for image, digit in val_loader:
            logits = model(image)
            val_loss += criterion(logits, digit).item() / len(val_loader)
            right += (logits.argmax(1) == digit).sum().item()
    print(
        f"epoch {epoch} train {train_loss:.4f} val {val_loss:.4f} accuracy {right / len(y_val):.3f}"
    )
