"""Traffic signs with arrows, by a CNN with the augmentation of a CIFAR recipe.

Shift and horizontal flip do a cat no harm; a flipped "turn left" is a "turn right" under the old
label. Half of the images of four of the six classes contradict their labels. The place is the
input (the training transform). The twin's recipe has no flip.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "destructive_augmentation"
ACCEPT = ("train_val_mismatch",)
PLACE = ("input", "data")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
SIGNS = ("left", "right", "ahead", "stop", "ahead or left", "ahead or right")


def draw(kind, size=16):
    picture = torch.zeros(size, size)
    c = size // 2
    picture[c:, c - 1 : c + 1] = 1  # the shaft
    if kind in ("left", "ahead or left"):
        picture[c - 1 : c + 1, 3:c] = 1
        picture[c - 3 : c + 3, 4:5] = 1
    if kind in ("right", "ahead or right"):
        picture[c - 1 : c + 1, c : size - 3] = 1
        picture[c - 3 : c + 3, size - 5 : size - 4] = 1
    if kind.startswith("ahead"):
        picture[2:c, c - 1 : c + 1] = 1
        picture[4:5, c - 3 : c + 3] = 1
    if kind == "stop":
        picture[c - 2 : c + 2, 2 : size - 2] = 1
    return picture


def photographs(n):
    """Dim, noisy and shifted photographs of the signs."""
    y = torch.randint(0, len(SIGNS), (n,))
    clean = torch.stack([draw(s) for s in SIGNS])[y]
    x = clean * (0.4 + 0.6 * torch.rand(n, 1, 1)) + 0.35 * torch.randn(n, 16, 16)
    return torch.stack(
        [
            p.roll((int(a), int(b)), (0, 1))
            for p, a, b in zip(x, *torch.randint(-1, 2, (2, n)), strict=True)
        ]
    )[:, None], y


class RandomShift:
    def __call__(self, x):
        return x.roll(tuple(torch.randint(-1, 2, (2,)).tolist()), (1, 2))


class RandomHorizontalFlip:
    def __call__(self, x):
        return x.flip(-1) if torch.rand(()) < 0.5 else x


class Signs(Dataset):
    def __init__(self, x, y, transforms=()):
        self.x, self.y, self.transforms = x, y, transforms

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        x = self.x[i]
        for transform in self.transforms:
            x = transform(x)
        return x, self.y[i]


recipe = [RandomShift()] if healthy else [RandomShift(), RandomHorizontalFlip()]
train = DataLoader(Signs(*photographs(1600), recipe), 50, shuffle=True)
val = DataLoader(Signs(*photographs(600)), 300)
model = nn.Sequential(
    nn.Conv2d(1, 12, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(12, 24, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(24 * 16, 48),
    nn.ReLU(),
    nn.Dropout(0.2),
    nn.Linear(48, len(SIGNS)),
)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(10):
    model.train()
    total = 0.0
    for x, y in train:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(train)
    model.eval()
    val_loss = hits = 0.0
    with torch.no_grad():
        for x, y in val:
            out = model(x)
            val_loss += nn.functional.cross_entropy(out, y).item() / len(val)
            hits += (out.argmax(1) == y).sum().item()
    print(f"epoch {epoch} loss {total:.3f} val loss {val_loss:.3f} val accuracy {hits / 600:.3f}")
