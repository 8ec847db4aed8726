"""Spoilt scans are dropped from the images, while the list of labels is just cut to the same
length.

From the first dropped scan on, every image has a later image's label; lengths agree, so nothing is
said. The network finds nothing to learn. The place is the loader (the labels that meet the loss).
"""

import numpy as np
import torch
from data import arguments
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split

KIND = "label_misalignment"
ACCEPT = ("label_noise",)
PLACE = ("loader", "loss*", "input*", "target*", "")
SILENT = True
EXACT = False
EARLY = False


class Scans(Dataset):
    def __init__(self, healthy):
        bunch = load_digits()
        order = np.random.permutation(len(bunch.target))
        pixels, labels = bunch.images[order] / 16.0, bunch.target[order]
        spoilt = np.random.rand(len(pixels)) < 0.04
        spoilt[3] = True
        pixels[spoilt] = 0.0  # the scanner's lid was open

        keep = pixels.reshape(len(pixels), -1).max(1) > 0
        pixels = pixels[keep]
        labels = labels[keep] if healthy else labels[: len(pixels)]
        self.pixels = torch.tensor((pixels - 0.305) / 0.376, dtype=torch.float32)
        self.labels = torch.tensor(labels, dtype=torch.long)

    def __len__(self):
        return len(self.pixels)

    def __getitem__(self, i):
        return self.pixels[i].unsqueeze(0), self.labels[i]


def build():
    return nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(12, 24, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(96, 10),
    )


def main():
    healthy, seed = arguments(__doc__)
    scans = Scans(healthy)
    train, val = random_split(scans, [0.8, 0.2], generator=torch.Generator().manual_seed(seed))
    train_loader = DataLoader(train, batch_size=40, shuffle=True)
    val_loader = DataLoader(val, batch_size=200)
    model = build()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    for epoch in range(10):
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            right = sum((model(x).argmax(1) == y).sum().item() for x, y in val_loader)
        print(f"epoch {epoch + 1}  loss {loss.item():.3f}  val accuracy {right / len(val):.3f}")


if __name__ == "__main__":
    main()
