"""Reads the digits of parcel codes; the training images come sorted by digit, and stay so.

The images lie in one folder per digit and are read folder by folder. The loader was written for a
test run with shuffle=False, so the net sees a thousand zeros, then ones, and so on, and forgets the
first when it comes to the last. The place is the loader.
The twin shuffles.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "unshuffled_data"
ACCEPT = ()
PLACE = ("loader", "input*")
SILENT = False
EXACT = False
EARLY = True


class Folders(Dataset):
    """Images in the order of their folders."""

    def __init__(self, images, labels):
        self.folders = [images[labels == digit] for digit in range(10)]
        self.index = [(d, i) for d in range(10) for i in range(len(self.folders[d]))]

    def __len__(self):
        return len(self.index)

    def __getitem__(self, k):
        digit, i = self.index[k]
        return self.folders[digit][i], digit


class CodeReader(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 16, 3, padding=1), nn.Conv2d(16, 32, 3, padding=1)
        self.fc1, self.fc2 = nn.Linear(128, 64), nn.Linear(64, 10)

    def forward(self, x):
        x = nn.functional.max_pool2d(self.conv1(x).relu(), 2)
        x = nn.functional.max_pool2d(self.conv2(x).relu(), 2)
        return self.fc2(self.fc1(x.flatten(1)).relu())


def main():
    healthy, seed = arguments(__doc__)
    x, y, x_val, y_val = images(seed)
    args = {"batch_size": 32, "shuffle": healthy, "drop_last": True}
    train = DataLoader(Folders(x, y), **args)
    valid = DataLoader(Folders(x_val, y_val), batch_size=150)
    model = CodeReader()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9)
    for epoch in range(1, 9):
        model.train()
        losses = []
        for xb, yb in train:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(xb), yb)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            hits = sum((model(xb).argmax(1) == yb).sum().item() for xb, yb in valid)
        mean = sum(losses) / len(losses)
        print(f"epoch {epoch}: train {mean:.3f}, validation accuracy {hits / len(y_val):.3f}")


if __name__ == "__main__":
    main()
