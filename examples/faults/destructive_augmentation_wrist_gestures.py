"""Gestures of a smart watch's wearer; augmentation flips the axes, and left becomes right.

Six gestures are read from three axes of acceleration. To be robust against how the watch is worn,
each axis of a training window gets a random sign. A swipe to the left is then a swipe to the
right, with the label of the former, and turning one way is turning the other.
The place is the loader's transform. The twin keeps the noise and the scaling and flips nothing.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "destructive_augmentation"
ACCEPT = ("label_noise",)
PLACE = ("loader", "input*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
GESTURES = ("left", "right", "up", "down", "clockwise", "anticlockwise")


def record(n, g):
    t = torch.linspace(0, 6.283, 40)
    y = torch.randint(0, 6, (n,), generator=g)
    s, c, zero = t.sin(), t.cos(), 0 * t
    shapes = torch.stack(
        [
            torch.stack([-s, zero, zero]),
            torch.stack([s, zero, zero]),
            torch.stack([zero, s, zero]),
            torch.stack([zero, -s, zero]),
            torch.stack([s, c, zero]),
            torch.stack([-s, c, zero]),
        ]
    )
    size = 0.7 + 0.6 * torch.rand(n, 1, 1, generator=g)
    return size * shapes[y] + 0.5 * torch.randn(n, 3, 40, generator=g), y


class Windows(Dataset):
    def __init__(self, x, y, augment):
        self.x, self.y, self.augment = x, y, augment

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        x = self.x[i]
        if self.augment:
            x = x * (0.8 + 0.4 * torch.rand(1)) + 0.1 * torch.randn_like(x)
            if not healthy:
                x = x * (torch.randint(0, 2, (3, 1)) * 2 - 1)
        return x, self.y[i]


class GestureNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv1d(3, 24, 5, padding=2)
        self.conv2 = nn.Conv1d(24, 32, 5, padding=2)
        self.norm1, self.norm2 = nn.BatchNorm1d(24), nn.BatchNorm1d(32)
        self.head = nn.Linear(32 * 5, 6)

    def forward(self, x):
        x = nn.functional.max_pool1d(self.norm1(self.conv1(x)).relu(), 2)
        x = nn.functional.max_pool1d(self.norm2(self.conv2(x)).relu(), 4)
        return self.head(x.flatten(1))


g = torch.Generator().manual_seed(seed)
x, y = record(1500, g)
train = DataLoader(Windows(x[:1200], y[:1200], True), batch_size=32, shuffle=True)
val = DataLoader(Windows(x[1200:], y[1200:], False), batch_size=100)
model = GestureNet()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(10):
    model.train()
    for xb, yb in train:
        loss = nn.functional.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = sum((model(xb).argmax(1) == yb).sum().item() for xb, yb in val)
    print(f"epoch {epoch}: last loss {loss.item():.3f}, validation {right / 300:.3f}")
