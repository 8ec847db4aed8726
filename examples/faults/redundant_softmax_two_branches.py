"""A skin spot net averages the softmax of two branches and is trained with cross entropy.

The person joined two nets of earlier notebooks, one for the picture and one for age, place and
size, as one averages the predictions of an ensemble, and kept CrossEntropyLoss, which takes the
softmax once more. The loss cannot fall below a bound far above zero. The place is the output of the
model.
"""

import numpy as np
import pandas as pd
import torch
from data import arguments
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "redundant_softmax"
ACCEPT = ("wrong_loss",)
PLACE = ("loss", "model", "image_branch*", "table_branch*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

KINDS = ["mole", "melanoma", "wart", "burn", "rash"]
COLUMNS = ["age", "diameter", "itch", "months"]
MEANS = np.array([[30, 4, 1, 90], [60, 9, 2, 8], [25, 5, 3, 12], [40, 20, 4, 1], [22, 35, 8, 1]])
SPREAD = np.array([12, 3, 1.5, 10])


def make_spots(n=1500, size=14):
    rng = np.random.default_rng(210 + seed)
    labels = rng.integers(0, len(KINDS), n)
    rows, columns = np.mgrid[:size, :size] - size / 2 + 0.5
    images = []
    for label in labels:
        angle = np.arctan2(rows, columns) + rng.uniform(0, 6.28)
        radius = np.hypot(rows, columns) / rng.uniform(3.0, 5.0)
        if label == 1:
            radius = radius * (1 + 0.35 * np.sin(3 * angle))
        spot = (radius < 1).astype(float)
        if label == 2:
            spot *= 0.4 + 0.6 * (radius > 0.6)
        if label == 3:
            spot *= np.clip(1.2 - radius, 0, 1)
        if label == 4:
            spot *= rng.random(spot.shape) < 0.45
        images.append(spot * rng.uniform(0.7, 1.3) + rng.normal(0, 0.3, spot.shape))
    table = pd.DataFrame(MEANS[labels] + SPREAD * 1.8 * rng.normal(size=(n, 4)), columns=COLUMNS)
    table["label"] = labels
    return np.stack(images), table


class SpotDataset(Dataset):
    def __init__(self, images, table):
        self.images = torch.tensor(images, dtype=torch.float32).unsqueeze(1)
        self.table = torch.tensor(table[COLUMNS].to_numpy(), dtype=torch.float32)
        self.labels = torch.tensor(table["label"].to_numpy())

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.images[index], self.table[index], self.labels[index]


class TwoBranchNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.image_branch = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Dropout(0.3),
            nn.Linear(24 * 9, len(KINDS)),
        )
        self.table_branch = nn.Sequential(
            nn.Linear(len(COLUMNS), 24), nn.ReLU(), nn.Linear(24, len(KINDS))
        )

    def forward(self, image, table):
        scores = [self.image_branch(image), self.table_branch(table)]
        if not healthy:
            scores = [torch.softmax(score, 1) for score in scores]
        return sum(scores) / len(scores)


images, table = make_spots()
train_rows, valid_rows = train_test_split(
    np.arange(len(table)), test_size=0.25, stratify=table["label"], random_state=seed
)
images = (images - images[train_rows].mean()) / images[train_rows].std()
fitted = table.loc[train_rows, COLUMNS]
table[COLUMNS] = (table[COLUMNS] - fitted.mean()) / fitted.std()
train_set = SpotDataset(images[train_rows], table.loc[train_rows])
valid_set = SpotDataset(images[valid_rows], table.loc[valid_rows])
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
valid_loader = DataLoader(valid_set, batch_size=375)
model = TwoBranchNet()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(12):
    model.train()
    train_loss, train_acc = 0.0, 0.0
    for image, numbers, label in train_loader:
        output = model(image, numbers)
        loss = criterion(output, label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        train_loss += loss.item() * len(label) / len(train_set)
        train_acc += (output.argmax(1) == label).sum().item() / len(train_set)
    model.eval()
    with torch.no_grad():
        for image, numbers, label in valid_loader:
            output = model(image, numbers)
            valid_loss = criterion(output, label).item()
            valid_acc = (output.argmax(1) == label).float().mean().item()
    print(
        f"epoch {epoch + 1:2d}: loss {train_loss:.4f} acc {train_acc:.3f}"
        f" | valid loss {valid_loss:.4f} acc {valid_acc:.3f}"
    )
