"""A leaf ResNet calls its phase "valid" while eval mode waits for "val", and validates in training.

The person took the well-known loop over two phases and renamed one, with the folders of the data.
The gradients follow the name "train", so all runs; but in validation the dropout is on and the
batch norms use and move the figures of the batch. The place is the loop.
"""

import time

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "train_mode_in_validation"
ACCEPT = ()
PLACE = ("loop", "model")
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)

SIZE = 20
SPECIES = ["birch", "oak", "maple", "willow", "ginkgo"]


def leaf(species, rng):
    rows, columns = np.mgrid[:SIZE, :SIZE] - SIZE / 2 + 0.5
    turn = rng.uniform(0, 6.28)
    y = rows * np.cos(turn) - columns * np.sin(turn)
    x = rows * np.sin(turn) + columns * np.cos(turn)
    angle, radius = np.arctan2(y, x), np.hypot(y, x)
    edge = {
        "birch": 5.5 + 0 * angle,
        "oak": 5.5 + 1.6 * np.sin(7 * angle),
        "maple": 5.0 + 2.2 * np.cos(5 * angle),
        "willow": 2.2 / np.sqrt(np.sin(angle) ** 2 + 0.07 * np.cos(angle) ** 2),
        "ginkgo": np.where(np.abs(angle) < 1.4, 7.5, 2.0),
    }[species] * rng.uniform(0.8, 1.15)
    inside = radius < edge
    picture = inside * rng.uniform(0.6, 1.0) - 0.3 * (inside & (np.abs(y) < 0.7))
    return picture + rng.normal(0, 0.28, picture.shape)


class BasicBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x):
        out = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(out)) + self.shortcut(x))


class LeafResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1 = BasicBlock(1, 12, 2)
        self.layer2 = BasicBlock(12, 24, 2)
        self.dropout = nn.Dropout(0.4)
        self.fc = nn.Linear(24, len(SPECIES))

    def forward(self, x):
        x = self.layer2(self.layer1(x)).mean((2, 3))
        return self.fc(self.dropout(x))


def make_loaders():
    rng = np.random.default_rng(88 + seed)
    labels = rng.integers(0, len(SPECIES), 1700)
    images = np.stack([leaf(SPECIES[label], rng) for label in labels])
    images = (images - images[:1300].mean()) / images[:1300].std()
    x = torch.tensor(images, dtype=torch.float32).unsqueeze(1)
    y = torch.tensor(labels)
    return {
        "train": DataLoader(TensorDataset(x[:1300], y[:1300]), batch_size=32, shuffle=True),
        "valid": DataLoader(TensorDataset(x[1300:], y[1300:]), batch_size=32),
    }


def train_model(model, loaders, criterion, optimizer, scheduler, num_epochs):
    since = time.time()
    validation = "valid" if healthy else "val"
    for epoch in range(num_epochs):
        print(f"Epoch {epoch}/{num_epochs - 1}")
        for phase in ["train", "valid"]:
            if phase == validation:
                model.eval()
            else:
                model.train()
            running_loss, running_corrects = 0.0, 0
            for inputs, labels in loaders[phase]:
                optimizer.zero_grad()
                with torch.set_grad_enabled(phase == "train"):
                    outputs = model(inputs)
                    loss = criterion(outputs, labels)
                    if phase == "train":
                        loss.backward()
                        optimizer.step()
                running_loss += loss.item() * len(labels)
                running_corrects += (outputs.argmax(1) == labels).sum().item()
            if phase == "train":
                scheduler.step()
            n = len(loaders[phase].dataset)
            print(f"{phase} Loss: {running_loss / n:.4f} Acc: {running_corrects / n:.4f}")
    print(f"Training complete in {time.time() - since:.0f}s")


model = LeafResNet()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=7, gamma=0.1)
train_model(model, make_loaders(), nn.CrossEntropyLoss(), optimizer, scheduler, num_epochs=10)
