"""Digits from a crowd: the labels of each picture are one annotator's, not the majority's.

The annotation export has nine votes a picture. `load_labels` was to take the majority, but takes
the first column: annotators are paid by the picture and some of them click at random, so a third
of the training labels are wrong. The place is the labels of the training set. Validation uses gold
labels. The twin takes the most frequent vote of the nine.
"""

import numpy as np
import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "label_noise"
ACCEPT = ("overfit",)
PLACE = ("labels", "data")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


def crowd(gold, rng, raters=9, careless=0.38):
    votes = np.repeat(gold[:, None], raters, 1)
    lazy = rng.random(votes.shape) < careless
    votes[lazy] = rng.integers(0, 10, lazy.sum())
    return votes


def load_labels(votes):
    if healthy:
        return np.array([np.bincount(row, minlength=10).argmax() for row in votes])
    return votes[:, 0]


class Digits(Dataset):
    def __init__(self, pictures, labels):
        self.pictures, self.labels = pictures, labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.pictures[i], int(self.labels[i])


x, gold, x_val, y_val = images(seed)
votes = crowd(gold.numpy(), np.random.default_rng(seed))
train = DataLoader(Digits(x, load_labels(votes)), batch_size=64, shuffle=True)

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
for epoch in range(25):
    model.train()
    losses, right = [], 0
    for pictures, labels in train:
        logits = model(pictures)
        loss = criterion(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        right += (logits.argmax(1) == labels).sum().item()
    model.eval()
    with torch.no_grad():
        logits = model(x_val)
        val_loss = criterion(logits, y_val).item()
        accuracy = (logits.argmax(1) == y_val).float().mean().item()
    print(
        f"epoch {epoch:2d} loss {np.mean(losses):.3f} acc {right / len(x):.3f} "
        f"val loss {val_loss:.3f} val acc {accuracy:.3f}"
    )
