"""A digit CNN has shifted copies joined block by block, but labels repeated one by one.

The person enlarged the training set: the pictures, then all of them moved left, then right, joined
with `np.concatenate`. For the labels `np.repeat(y, 3)` was taken where `np.tile(y, 3)` is right.
Only the training part is hit. The place is the labels.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "label_misalignment"
ACCEPT = ("label_noise",)
PLACE = ("labels", "input", "loader")
SILENT = False
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)


def shift(images, columns):
    moved = np.roll(images, columns, axis=2)
    if columns > 0:
        moved[:, :, :columns] = 0
    else:
        moved[:, :, columns:] = 0
    return moved


def enlarge(images, labels):
    images = np.concatenate([images, shift(images, -1), shift(images, 1)])
    labels = np.tile(labels, 3) if healthy else np.repeat(labels, 3)
    return images, labels


class DigitDataset(Dataset):
    def __init__(self, images, labels, mean, std):
        self.images = torch.tensor((images - mean) / std, dtype=torch.float32).unsqueeze(1)
        self.labels = torch.tensor(labels, dtype=torch.long)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.images[index], self.labels[index]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.dropout = nn.Dropout(0.25)
        self.fc1 = nn.Linear(32 * 2 * 2, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = self.dropout(F.relu(self.fc1(x.flatten(1))))
        return self.fc2(x)


def train(model, loader, optimizer, epoch):
    model.train()
    total, correct = 0.0, 0
    for data, target in loader:
        optimizer.zero_grad()
        output = model(data)
        loss = F.cross_entropy(output, target)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(target)
        correct += (output.argmax(1) == target).sum().item()
    n = len(loader.dataset)
    print(f"Train epoch {epoch:2d}  loss {total / n:.4f}  accuracy {correct / n:.3f}", end="  ")


def test(model, loader):
    model.eval()
    total, correct = 0.0, 0
    with torch.no_grad():
        for data, target in loader:
            output = model(data)
            total += F.cross_entropy(output, target, reduction="sum").item()
            correct += (output.argmax(1) == target).sum().item()
    n = len(loader.dataset)
    print(f"Test loss {total / n:.4f}  accuracy {correct / n:.3f}")


bunch = load_digits()
x_train, x_test, y_train, y_test = train_test_split(
    bunch.images, bunch.target, test_size=0.25, random_state=seed, stratify=bunch.target
)
mean, std = x_train.mean(), x_train.std()
x_train, y_train = enlarge(x_train, y_train)
train_loader = DataLoader(DigitDataset(x_train, y_train, mean, std), batch_size=64, shuffle=True)
test_loader = DataLoader(DigitDataset(x_test, y_test, mean, std), batch_size=500)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(1, 9):
    train(model, train_loader, optimizer, epoch)
    test(model, test_loader)
