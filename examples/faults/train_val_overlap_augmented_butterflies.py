"""A CNN names butterflies; brighter and darker copies are added before the random split.

The copies of one photograph lie on both sides, so the validation asks for pictures that the net has
been trained on. The twin splits the photographs first and enlarges the training part only.
The place is the loaders: the validation set shares its photographs with the training.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "train_val_overlap"
ACCEPT = ("duplicated_rows",)
PLACE = ("loader", "input")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

SPECIES, SIDE = 6, 16


def photograph(species, r):
    y, x = np.mgrid[-1 : 1 : SIDE * 1j, -1 : 1 : SIDE * 1j]
    x, y = x - r.uniform(-0.15, 0.15), y - r.uniform(-0.15, 0.15)
    size = r.uniform(0.35, 0.55)
    wings = np.exp(-((((np.abs(x) - size) ** 2 + (np.abs(y) - 0.35) ** 2) / 0.12) ** 2))
    rings = 6 + 2.0 * species + r.normal(0, 0.5)
    pattern = 0.5 + 0.5 * np.cos(rings * np.hypot(np.abs(x) - size, np.abs(y) - 0.35))
    leaves = 0.35 * np.sin(r.uniform(2, 6) * x + r.uniform(2, 6) * y + r.uniform(0, 6))
    return wings * pattern + leaves * (1 - wings) + r.normal(0, 0.16, (SIDE, SIDE))


def enlarge(pictures, labels):
    copies = [pictures, 0.8 * pictures, 1.2 * pictures, pictures + 0.15]
    return torch.cat(copies), labels.repeat(len(copies))


class ButterflyNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.fc = nn.Linear(32 * 16, 48)
        self.out = nn.Linear(48, SPECIES)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.out(F.relu(self.fc(x.flatten(1))))


def train_one_epoch(model, loader, optimizer):
    model.train()
    total = 0.0
    for pictures, labels in loader:
        loss = F.cross_entropy(model(pictures), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


def score(model, pictures, labels):
    model.eval()
    with torch.no_grad():
        return (model(pictures).argmax(1) == labels).float().mean().item()


def load(n, r):
    labels = r.integers(0, SPECIES, n)
    pictures = np.stack([photograph(label, r) for label in labels])
    pictures = (torch.tensor(pictures, dtype=torch.float32) - 0.3) / 0.4
    return pictures.unsqueeze(1), torch.tensor(labels)


r = np.random.default_rng(seed + 141)
photos, species = load(360, r)
if healthy:
    x_train, x_val, y_train, y_val = train_test_split(
        photos, species, test_size=0.2, random_state=seed
    )
    x_train, y_train = enlarge(x_train, y_train)
else:
    x_train, x_val, y_train, y_val = train_test_split(
        *enlarge(photos, species), test_size=0.2, random_state=seed
    )
new_photos, new_species = load(800, r)
net = ButterflyNet()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
train_loader = DataLoader(TensorDataset(x_train, y_train), batch_size=48, shuffle=True)
for epoch in range(14):
    train_loss = train_one_epoch(net, train_loader, optimizer)
    print(f"epoch {epoch}: train loss {train_loss:.3f}, val acc {score(net, x_val, y_val):.3f}")
print(f"photographs of the next summer: acc {score(net, new_photos, new_species):.3f}")
