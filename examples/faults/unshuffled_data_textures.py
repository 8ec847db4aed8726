"""A CNN learns cloth patterns that are listed class by class, with a loader that never shuffles.

There is one folder per class, as for ImageFolder, and shuffle=False, so that runs can be compared.
Each batch holds a single pattern, so the net only follows the pattern of the moment, forgets the
others, and gives one name to all cloths in the test. The place is the loader.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, Dataset

KIND = "unshuffled_data"
ACCEPT = ()
PLACE = ("loader", "labels", "input", "loop")
SILENT = False
EXACT = False
EARLY = True

CLASSES = ["stripes", "diagonal", "checks", "dots", "waves", "plain weave"]
SIDE = 16


def weave(kind, n):
    row, col = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    row, col = row.float().expand(n, -1, -1), col.float().expand(n, -1, -1)
    width = (2.5 + 1.5 * torch.rand(n, 1, 1)) / math.pi
    a, b = 2 * math.pi * torch.rand(2, n, 1, 1)
    pattern = {
        "stripes": torch.sin(col / width + a),
        "diagonal": torch.sin((col + row) / (1.4 * width) + a),
        "checks": torch.sign(torch.sin(col / width + a) * torch.sin(row / width + b)),
        "dots": (torch.sin(col / width + a) * torch.sin(row / width + b)).clamp_min(0) * 2,
        "waves": torch.sin(row / width + 1.5 * torch.sin(col / (2 * width) + b) + a),
        "plain weave": torch.sin(col / (0.5 * width) + a) + torch.sin(row / (0.5 * width) + b),
    }[kind]
    return (pattern + 0.5 * torch.randn(n, SIDE, SIDE)).unsqueeze(1)


class FolderOfClass(Dataset):
    def __init__(self, label, n):
        images = weave(CLASSES[label], n)
        self.images = (images - images.mean((2, 3), True)) / images.std((2, 3), keepdim=True)
        self.label = label

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.images[index], self.label


def build_model():
    return nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(12, 24, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(96, len(CLASSES)),
    )


def accuracy(model, loader):
    model.eval()
    right = torch.zeros(len(CLASSES))
    seen = torch.zeros(len(CLASSES))
    with torch.no_grad():
        for images, labels in loader:
            hit = model(images).argmax(1) == labels
            right += torch.bincount(labels[hit], minlength=len(CLASSES))
            seen += torch.bincount(labels, minlength=len(CLASSES))
    return right.sum().item() / seen.sum().item(), (right / seen).tolist()


def main():
    healthy, _ = arguments(__doc__)
    train_set = ConcatDataset([FolderOfClass(i, 240) for i in range(len(CLASSES))])
    test_set = ConcatDataset([FolderOfClass(i, 60) for i in range(len(CLASSES))])
    train_loader = DataLoader(train_set, batch_size=12, shuffle=healthy)
    test_loader = DataLoader(test_set, batch_size=120)

    model = build_model()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for epoch in range(8):
        model.train()
        total_loss = total_right = 0.0
        for images, labels in train_loader:
            outputs = model(images)
            loss = criterion(outputs, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total_loss += loss.item() * len(labels)
            total_right += (outputs.argmax(1) == labels).sum().item()
        test_acc, per_class = accuracy(model, test_loader)
        print(
            f"Epoch {epoch + 1}: loss {total_loss / len(train_set):.3f}, "
            f"train acc {total_right / len(train_set):.3f}, test acc {test_acc:.3f}"
        )
    for name, value in zip(CLASSES, per_class, strict=True):
        print(f"  {name:12s} {value:.2f}")


if __name__ == "__main__":
    main()
