"""Digits from a scanner, some of whose scans failed; the failed ones are dropped from x, not from
y.

"Target size (1797) does not match input size (1725)": the author cut the labels to the length of
the images. From the first failed scan on, every image has the label of an earlier one. The place
is the labels. The twin takes the same mask for both.
"""

import numpy as np
import torch
from data import arguments
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "label_misalignment"
ACCEPT = ()
PLACE = ("labels", "data")
SILENT = False
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


def scans():
    bunch = load_digits()
    images = bunch.images.astype(np.float32)
    failed = np.random.default_rng(seed).random(len(images)) < 0.04
    images[failed] = np.nan
    return images, bunch.target


def load():
    images, labels = scans()
    ok = ~np.isnan(images).any(axis=(1, 2))
    images = images[ok] / 16.0 - 0.5
    labels = labels[ok] if healthy else labels[: len(images)]
    return TensorDataset(torch.from_numpy(images)[:, None], torch.from_numpy(labels).long())


dataset = load()
n_val = len(dataset) // 4
train_set, val_set = random_split(
    dataset, [len(dataset) - n_val, n_val], generator=torch.Generator().manual_seed(seed)
)
train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
val_loader = DataLoader(val_set, batch_size=256)

model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(32 * 16, 64),
    nn.ReLU(),
    nn.Linear(64, 10),
)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss()

for epoch in range(13):
    model.train()
    train_loss = 0.0
    for image, label in train_loader:
        loss = criterion(model(image), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        train_loss += loss.item() * len(image)
    model.eval()
    val_loss = hits = 0.0
    with torch.no_grad():
        for image, label in val_loader:
            out = model(image)
            val_loss += criterion(out, label).item() * len(image)
            hits += (out.argmax(1) == label).sum().item()
    print(
        f"epoch {epoch + 1:2d} train {train_loss / len(train_set):.3f} val {val_loss / n_val:.3f} "
        f"val accuracy {hits / n_val:.3f}"
    )
