"""What a milling machine is doing, by its current; windows are shuffled, and their labels anew.

X and y are two arrays, each of which was shuffled by a call of its own, np.random.permutation on
one and on the other. A window's label is that of some window.
The place is the labels and the loader. The twin takes one permutation for both.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "label_misalignment"
ACCEPT = ("label_noise",)
PLACE = ("loader", "label*", "input*", "loss*")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
STATES = ("idle", "rapid move", "roughing", "finishing")


def load(n):
    r = np.random.default_rng(seed)
    y = np.sort(r.integers(0, len(STATES), n))
    t = np.arange(50)
    level = np.array([0.1, 0.5, 1.0, 0.6])[y, None]
    ripple = np.array([0.02, 0.1, 0.4, 0.25])[y, None]
    pitch = np.array([0.3, 0.5, 1.1, 2.0])[y, None] * r.uniform(0.9, 1.1, (n, 1))
    x = level + ripple * np.sin(pitch * t + r.uniform(0, 6.28, (n, 1)))
    x = x + r.normal(0, 0.15, (n, 1)) + r.normal(0, 0.1, (n, 50))
    return ((x - x.mean()) / x.std()).astype(np.float32), y


class StateNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(1, 16, 7, padding=3),
            nn.ReLU(),
            nn.MaxPool1d(2),
            nn.Conv1d(16, 24, 5),
            nn.ReLU(),
        )
        self.head = nn.Linear(48, len(STATES))

    def forward(self, x):
        h = self.conv(x.unsqueeze(1))
        return self.head(torch.cat([h.mean(2), h.amax(2)], 1))


x, y = load(2000)
if healthy:
    order = np.random.permutation(len(x))
    x, y = x[order], y[order]
else:
    x, y = np.random.permutation(x), np.random.permutation(y)
x, y = torch.from_numpy(x), torch.from_numpy(y)
train = DataLoader(TensorDataset(x[:1600], y[:1600]), batch_size=40, shuffle=True)
model = StateNet()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(8):
    total = 0.0
    for xb, yb in train:
        loss = nn.functional.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    with torch.no_grad():
        right = (model(x[1600:]).argmax(1) == y[1600:]).float().mean().item()
    print(f"epoch {epoch}: loss {total / len(train):.3f} validation {right:.3f}")
