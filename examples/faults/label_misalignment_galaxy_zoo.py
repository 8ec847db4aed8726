"""A LeNet sorts galaxies; its pictures come in the folder's order, its labels in the CSV file's.

sorted() puts galaxy_10.jpg before galaxy_2.jpg, and labels.csv counts 0, 1, 2, …, so nearly every
picture gets another one's label; the net learns the class frequencies at most. The twin looks the
label up by the file name. The place is the Dataset: the labels of its items.
"""

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split

KIND = "label_misalignment"
ACCEPT = ("label_noise",)
PLACE = ("labels", "loader", "input")
SILENT = False
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

CLASSES = ["elliptical", "spiral", "edge_on"]


def take_photograph(kind, r, side=20):
    axis = np.linspace(-1, 1, side)
    x, y = np.meshgrid(axis, axis)
    turn = r.uniform(0, np.pi)
    u, v = x * np.cos(turn) + y * np.sin(turn), y * np.cos(turn) - x * np.sin(turn)
    radius, angle = np.hypot(u, v), np.arctan2(v, u)
    if kind == "elliptical":
        light = np.exp(-(u**2 + (v / r.uniform(0.7, 1.0)) ** 2) / r.uniform(0.1, 0.3))
    elif kind == "spiral":
        arms = np.cos(2 * angle - r.uniform(4, 7) * radius) ** 4
        light = np.exp(-(radius**2) / 0.02) + arms * np.exp(-(radius**2) / 0.4)
    else:
        light = np.exp(-(u**2) / r.uniform(0.3, 0.6) - v**2 / 0.02)
    return (light + r.normal(0, 0.15, (side, side))).astype("float32")


def make_folder(n=1600):
    r = np.random.default_rng(seed + 31)
    names = [f"galaxy_{i}.jpg" for i in range(n)]
    kinds = r.choice(CLASSES, n, p=[0.5, 0.3, 0.2])
    folder = {name: take_photograph(kind, r) for name, kind in zip(names, kinds, strict=True)}
    return folder, pd.DataFrame({"filename": names, "class": kinds})


class GalaxyDataset(Dataset):
    def __init__(self, folder, labels):
        self.files, self.folder = sorted(folder), folder
        by_name = labels.set_index("filename")["class"]
        kinds = by_name.loc[self.files] if healthy else labels["class"]
        self.targets = [CLASSES.index(kind) for kind in kinds]

    def __len__(self):
        return len(self.files)

    def __getitem__(self, idx):
        image = torch.from_numpy(self.folder[self.files[idx]]).unsqueeze(0)
        return (image - 0.2) / 0.3, self.targets[idx]


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 3)
        self.fc1 = nn.Linear(16 * 3 * 3, 48)
        self.fc2 = nn.Linear(48, 3)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


dataset = GalaxyDataset(*make_folder())
train_set, val_set = random_split(dataset, [1280, 320])
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
val_loader = DataLoader(val_set, batch_size=160)
model = LeNet()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
for epoch in range(6):
    model.train()
    running_loss = 0.0
    for images, targets in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), targets)
        loss.backward()
        optimizer.step()
        running_loss += loss.item()
    model.eval()
    with torch.no_grad():
        hits = sum((model(x).argmax(1) == y).sum().item() for x, y in val_loader)
    print(f"Epoch {epoch + 1} loss {running_loss / len(train_loader):.3f} acc {hits / 320:.3f}")
