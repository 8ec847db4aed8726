"""Pictures listed by name, so that img_10 comes before img_2, meet labels in the order of their
numbers.

Almost every picture has another one's label: the loss stays near ln 10, and what falls of it is
memorised; validation is at chance. The place is the loader.
"""

import os
import re
import tempfile

import numpy as np
import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "label_misalignment"
ACCEPT = ()
PLACE = ("loader", "")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def number(name):
    return int(re.search(r"\d+", name).group())


class Folder(Dataset):
    """img_0.npy, img_1.npy, ... and labels.csv with one label a line."""

    def __init__(self, root):
        names = [name for name in os.listdir(root) if name.endswith(".npy")]
        names = sorted(names, key=number) if healthy else sorted(names)
        self.pictures = [torch.from_numpy(np.load(os.path.join(root, name))) for name in names]
        self.labels = np.loadtxt(os.path.join(root, "labels.csv"), dtype=np.int64)

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, i):
        return self.pictures[i], int(self.labels[i])


def export(root, pictures, labels):
    for i, picture in enumerate(pictures):
        np.save(os.path.join(root, f"img_{i}.npy"), picture.numpy())
    np.savetxt(os.path.join(root, "labels.csv"), labels.numpy(), fmt="%d")


class SmallResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(1, 16, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(16)
        self.block = nn.Sequential(
            nn.Conv2d(16, 16, 3, padding=1, bias=False),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.Conv2d(16, 16, 3, padding=1, bias=False),
            nn.BatchNorm2d(16),
        )
        self.fc = nn.Linear(64, 10)

    def forward(self, picture):
        h = torch.relu(self.bn(self.stem(picture)))
        h = torch.relu(h + self.block(h))
        return self.fc(nn.functional.avg_pool2d(h, 4).flatten(1))


x, y, x_val, y_val = images(seed)
with tempfile.TemporaryDirectory() as train_root, tempfile.TemporaryDirectory() as val_root:
    export(train_root, x, y)
    export(val_root, x_val, y_val)
    train_set, val_set = Folder(train_root), Folder(val_root)
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
val_loader = DataLoader(val_set, batch_size=150)
model = SmallResNet()
loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
EPOCHS = 8
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
for epoch in range(EPOCHS):
    model.train()
    for pictures, labels in train_loader:
        loss = loss_fn(model(pictures), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        right = sum((model(p).argmax(1) == t).sum().item() for p, t in val_loader)
print(f"loss {loss.item():.3f}, validation accuracy {right / len(val_set):.3f}")
