"""A 1-D CNN reads brain recordings given in volts, some 0.00001 large, and sees nothing.

The person read the recordings with a library that always returns volts, cut them into epochs and
fed them as they are. The first layer sees next to nothing but its bias. Nothing is divided by the
spread of the training part. The place is the input.
"""

import numpy as np
import torch
from data import arguments
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "input_not_normalized"
ACCEPT = ()
PLACE = ("input", "conv1", "conv1.*")
SILENT = False
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

CHANNELS = 6
SAMPLES = 96
MOVES = ["left", "right", "feet"]


def read_epochs(n=900):
    """Epochs of shape (channels, samples) in volts; each move damps a rhythm over some channels."""
    rng = np.random.default_rng(70 + seed)
    time = np.arange(SAMPLES) / 64
    labels = rng.integers(0, 3, n)
    signals = np.cumsum(rng.normal(0, 1, (n, CHANNELS, SAMPLES)), -1)
    signals -= signals.mean(-1, keepdims=True)
    signals *= 2 / signals.std(-1, keepdims=True)
    for i, label in enumerate(labels):
        strength = np.full(CHANNELS, 3.0)
        strength[2 * label : 2 * label + 2] = 1.0
        strength *= rng.uniform(0.7, 1.3, CHANNELS)
        rhythm = np.sin(2 * np.pi * rng.uniform(9, 12) * time + rng.uniform(0, 6.28, (CHANNELS, 1)))
        signals[i] += strength[:, None] * rhythm
    signals += rng.normal(0, 1, signals.shape)
    return (signals * 4e-6).astype(np.float32), labels


class EpochDataset(Dataset):
    def __init__(self, signals, labels):
        self.signals = torch.from_numpy(signals)
        self.labels = torch.from_numpy(labels)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.signals[index], self.labels[index]


class EEGNet1D(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv1d(CHANNELS, 24, 13, padding=6)
        self.conv2 = nn.Conv1d(24, 32, 7, padding=3)
        self.pool = nn.MaxPool1d(4)
        self.dropout = nn.Dropout(0.3)
        self.fc = nn.Linear(32, len(MOVES))

    def forward(self, x):
        x = self.pool(torch.relu(self.conv1(x)))
        x = torch.relu(self.conv2(x)).mean(-1)
        return self.fc(self.dropout(x))


def accuracy(model, loader):
    model.eval()
    correct = 0
    with torch.no_grad():
        for signals, labels in loader:
            correct += (model(signals).argmax(1) == labels).sum().item()
    return correct / len(loader.dataset)


signals, labels = read_epochs()
train_x, valid_x, train_y, valid_y = train_test_split(
    signals, labels, test_size=0.25, stratify=labels, random_state=seed
)
if healthy:
    mean = train_x.mean((0, 2), keepdims=True)
    std = train_x.std((0, 2), keepdims=True)
    train_x, valid_x = (train_x - mean) / std, (valid_x - mean) / std
train_loader = DataLoader(EpochDataset(train_x, train_y), batch_size=32, shuffle=True)
valid_loader = DataLoader(EpochDataset(valid_x, valid_y), batch_size=128)
model = EEGNet1D()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(14):
    model.train()
    running_loss = 0.0
    for signals, labels in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(signals), labels)
        loss.backward()
        optimizer.step()
        running_loss += loss.item()
    print(
        f"Epoch {epoch + 1:2d}/14  running loss {running_loss / len(train_loader):.4f}"
        f"  train acc {accuracy(model, train_loader):.3f}"
        f"  valid acc {accuracy(model, valid_loader):.3f}"
    )
