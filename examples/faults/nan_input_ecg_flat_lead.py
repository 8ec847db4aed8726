"""Tells three kinds of heart rhythm apart; windows in which the electrode was off become NaN.

Each window of the recording is brought to mean 0 and standard deviation 1 on its own. A few
windows come from a moment when the electrode had fallen off: the line is flat, its standard
deviation 0, and 0 / 0 is not a number. Nobody looked at the windows after that.
The place is the input, made in `window_norm`.
The twin adds a small number to the standard deviation, so that a flat window becomes zeros.
"""

import torch
from data import arguments, waves
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "nan_input"
ACCEPT = ("division_by_zero_norm",)
PLACE = ("input*", "loader")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
EPS = 1e-5 if healthy else 0.0


def window_norm(x):
    return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + EPS)


class Windows(Dataset):
    def __init__(self, signal, rhythm):
        self.signal, self.rhythm = signal, rhythm

    def __len__(self):
        return len(self.signal)

    def __getitem__(self, i):
        return window_norm(self.signal[i]), self.rhythm[i]


x, y = waves(seed, n=1600, length=48)
x = x.transpose(1, 2) * 0.8 + 2.5  # millivolts with an offset
off = torch.randperm(1200)[:15]
x[off] = 2.5  # the amplifier's rest value
train = DataLoader(Windows(x[:1200], y[:1200]), batch_size=32, shuffle=True)
val = DataLoader(Windows(x[1200:], y[1200:]), batch_size=100)

net = nn.Sequential(
    nn.Conv1d(1, 16, 5, padding=2),
    nn.ReLU(),
    nn.MaxPool1d(2),
    nn.Conv1d(16, 32, 5, padding=2),
    nn.ReLU(),
    nn.AdaptiveAvgPool1d(4),
    nn.Flatten(),
    nn.Linear(128, 3),
)
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss()

for epoch in range(8):
    net.train()
    total = 0.0
    for signal, rhythm in train:
        optimizer.zero_grad()
        loss = criterion(net(signal), rhythm)
        loss.backward()
        optimizer.step()
        total += loss.item()
    net.eval()
    with torch.no_grad():
        hits = sum((net(s).argmax(1) == r).sum().item() for s, r in val)
    print(f"epoch {epoch}: loss {total / len(train):.3f}, accuracy {hits / 400:.3f}")
