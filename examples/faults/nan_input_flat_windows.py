"""A CNN on pulse recordings divides each window by its own standard deviation, which is 0 for some.

Where the sensor had slipped off the window is flat, and (x - mean) / std is 0/0. A few of 1,500
windows are enough: the first batch with one of them turns all weights into NaN. The twin adds a
small number to the standard deviation. The place is the input.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "nan_input"
ACCEPT = ()
PLACE = ("input*",)
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
LENGTH = 64
EPS = 1e-6 if healthy else 0.0


class PulseWindows(Dataset):
    """Regular pulse (0) or one with a broad early beat (1); some windows are flat (0)."""

    def __init__(self, n):
        self.signal = torch.zeros(n, LENGTH)
        self.label = torch.randint(0, 2, (n,))
        t = torch.arange(LENGTH).float()
        for i in range(n):
            period = 11 + 3 * torch.rand(1).item()
            beats = [
                torch.rand(1).item() * period + k * period
                for k in range(math.ceil(LENGTH / period))
            ]
            width = [3.0] * len(beats)
            if self.label[i] == 1:
                beats[2] -= 0.3 * period
                width[2] = 14.0
            for b, w in zip(beats, width, strict=True):
                self.signal[i] += torch.exp(-((t - b) ** 2) / w)
        self.signal = 400 + 90 * self.signal + 8 * torch.randn(n, LENGTH)
        flat = torch.rand(n) < 0.004
        self.signal[flat] = 400.0
        self.label[flat] = 0

    def __len__(self):
        return len(self.label)

    def __getitem__(self, i):
        x = self.signal[i]
        x = (x - x.mean()) / (x.std() + EPS)
        return x.unsqueeze(0), self.label[i]


train_set, val_set = PulseWindows(1500), PulseWindows(500)
train_loader = DataLoader(train_set, batch_size=16, shuffle=True)
val_loader = DataLoader(val_set, batch_size=250)
model = nn.Sequential(
    nn.Conv1d(1, 16, 7, padding=3),
    nn.ReLU(),
    nn.MaxPool1d(2),
    nn.Conv1d(16, 24, 7, padding=3),
    nn.ReLU(),
    nn.MaxPool1d(2),
    nn.Conv1d(24, 24, 5, padding=2),
    nn.ReLU(),
    nn.AdaptiveMaxPool1d(1),
    nn.Flatten(),
    nn.Dropout(0.2),
    nn.Linear(24, 2),
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss()


def run_epoch(loader, train):
    model.train(train)
    total, right, seen = 0.0, 0, 0
    with torch.set_grad_enabled(train):
        for xb, yb in loader:
            out = model(xb)
            loss = criterion(out, yb)
            if train:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item() * len(yb)
            right += (out.argmax(1) == yb).sum().item()
            seen += len(yb)
    return total / seen, right / seen


for epoch in range(1, 9):
    train_loss, train_acc = run_epoch(train_loader, True)
    val_loss, val_acc = run_epoch(val_loader, False)
    if epoch % 2 == 0:
        print(
            f"epoch {epoch}: train {train_loss:.4f}/{train_acc:.3f} "
            f"val {val_loss:.4f}/{val_acc:.3f}"
        )
