"""A LeNet for clothes is trained by SGD with the default rate of 0.001 and hardly moves.

The person came from Keras, where SGD takes 0.01 by itself and is quick enough with momentum, and
wrote `optim.SGD(model.parameters())`. Here the default is 0.001 without momentum; after all epochs
the loss has hardly left the level of guessing. The place is the optimizer.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset

KIND = "learning_rate_too_low"
ACCEPT = ("bad_optimizer_settings",)
PLACE = ("optimizer", "learning_rate")
SILENT = False
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

CLASSES = ("shirt", "trousers", "dress", "shoe", "bag", "hat")
SIZE = 16


def silhouette(name, rng):
    shape = np.zeros((SIZE, SIZE))
    left, right = rng.integers(3, 6), SIZE - rng.integers(3, 6)
    top = rng.integers(1, 4)
    if name == "shirt":
        shape[top:12, left:right] = 1
        shape[top : top + 4, left - 2 : right + 2] = 1
    elif name == "trousers":
        shape[top:15, left:right] = 1
        shape[top + 4 : 15, SIZE // 2 - 1 : SIZE // 2 + 1] = 0
    elif name == "dress":
        for row in range(top, 15):
            width = 2 + (row - top) // 3
            shape[row, SIZE // 2 - width : SIZE // 2 + width] = 1
    elif name == "shoe":
        height = rng.integers(8, 11)
        shape[height:13, left - 2 : right + 1] = 1
        shape[height - 4 : height, right - 4 : right + 1] = 1
    elif name == "bag":
        shape[7:14, left - 1 : right + 1] = 1
        shape[3:7, [left + 1, right - 2]] = 1
        shape[3, left + 1 : right - 1] = 1
    else:
        shape[9:11, 1 : SIZE - 1] = 1
        shape[4:9, left + 1 : right - 1] = 1
    shape *= rng.uniform(0.5, 1.0) * (1 + 0.3 * rng.normal(size=shape.shape))
    return np.roll(shape, rng.integers(-1, 2, 2), (0, 1)) + rng.normal(0, 0.15, shape.shape)


class ClothesDataset(Dataset):
    def __init__(self, n, rng, mean=None, std=None):
        self.labels = rng.integers(0, len(CLASSES), n)
        images = np.stack([silhouette(CLASSES[label], rng) for label in self.labels])
        self.mean = images.mean() if mean is None else mean
        self.std = images.std() if std is None else std
        self.images = torch.tensor((images - self.mean) / self.std, dtype=torch.float32)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.images[index].unsqueeze(0), self.labels[index]


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 2 * 2, 60)
        self.fc2 = nn.Linear(60, 42)
        self.fc3 = nn.Linear(42, len(CLASSES))

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = F.relu(self.fc1(torch.flatten(x, 1)))
        return self.fc3(F.relu(self.fc2(x)))


rng = np.random.default_rng(33 + seed)
train_set = ClothesDataset(1600, rng)
test_set = ClothesDataset(500, rng, train_set.mean, train_set.std)
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
test_loader = DataLoader(test_set, batch_size=250)
net = LeNet()
criterion = nn.CrossEntropyLoss()
settings = {"lr": 0.01, "momentum": 0.9} if healthy else {}
optimizer = optim.SGD(net.parameters(), **settings)

for epoch in range(8):
    net.train()
    running_loss = 0.0
    for i, (inputs, labels) in enumerate(train_loader):
        optimizer.zero_grad()
        loss = criterion(net(inputs), labels)
        loss.backward()
        optimizer.step()
        running_loss += loss.item()
        if i % 25 == 24:
            print(f"[{epoch + 1}, {i + 1:3d}] loss: {running_loss / 25:.3f}")
            running_loss = 0.0
    net.eval()
    correct = 0
    with torch.no_grad():
        for inputs, labels in test_loader:
            correct += (net(inputs).argmax(1) == labels).sum().item()
    print(f"Accuracy of the network on the test pictures: {100 * correct / len(test_set):.1f} %")
