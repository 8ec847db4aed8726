"""Fruit by colour: the training pictures come from one reader, those of validation from another.

The second reader gives the channels as BGR, the first as RGB, so that the reds of validation are
blue. The twin turns them around. The place is the loader of validation (the input).
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "train_val_mismatch"
ACCEPT = ()
PLACE = ("loader", "input")
SILENT = True
EXACT = False
EARLY = False

FRUIT = {
    "tomato": (0.80, 0.20, 0.12),
    "orange": (0.92, 0.55, 0.12),
    "lemon": (0.90, 0.82, 0.25),
    "plum": (0.42, 0.18, 0.38),
}
MEAN, STD = (0.72, 0.58, 0.42), (0.24, 0.26, 0.24)


def paint(n, g):
    labels = torch.randint(0, len(FRUIT), (n,), generator=g)
    colours = torch.tensor(list(FRUIT.values()))[labels] + 0.07 * torch.randn(n, 3, generator=g)
    table = torch.tensor([0.85, 0.74, 0.60]) + 0.05 * torch.randn(n, 3, generator=g)
    at = torch.arange(16.0)
    centre = 6 + 4 * torch.rand(n, 2, 1, 1, generator=g)
    radius = 4 + 2 * torch.rand(n, 1, 1, generator=g)
    distance = (at[:, None] - centre[:, 0]) ** 2 + (at[None, :] - centre[:, 1]) ** 2
    disc = (distance < radius**2).float()[..., None]
    pictures = disc * colours[:, None, None] + (1 - disc) * table[:, None, None]
    return pictures + 0.04 * torch.randn(n, 16, 16, 3, generator=g), labels


def pil_like(picture):
    return picture.clamp(0, 1)


def cv2_like(picture):
    return picture.clamp(0, 1).flip(-1)


class Basket(Dataset):
    def __init__(self, pictures, labels, read):
        self.pictures, self.labels, self.read = pictures, labels, read

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        x = self.read(self.pictures[i])
        x = (x - torch.tensor(MEAN)) / torch.tensor(STD)
        return x.permute(2, 0, 1), self.labels[i]


class FruitNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 16, 3), nn.Conv2d(16, 24, 3)
        self.fc = nn.Linear(24, len(FRUIT))

    def forward(self, x):
        x = F.max_pool2d(F.gelu(self.conv1(x)), 2)
        return self.fc(F.gelu(self.conv2(x)).mean((2, 3)))


healthy, seed = arguments(__doc__)
g = torch.Generator().manual_seed(40 + seed)
train_loader = DataLoader(Basket(*paint(1000, g), pil_like), batch_size=25, shuffle=True)
val_loader = DataLoader(Basket(*paint(300, g), pil_like if healthy else cv2_like), batch_size=100)
model = FruitNet()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(7):
    model.train()
    losses = []
    for x, y in train_loader:
        loss = F.cross_entropy(model(x), y, label_smoothing=0.02)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    right, val = 0, 0.0
    with torch.inference_mode():
        for x, y in val_loader:
            out = model(x)
            val += F.cross_entropy(out, y).item() / len(val_loader)
            right += (out.argmax(1) == y).sum().item()
    print(f"{epoch}: {sum(losses) / len(losses):.3f} / {val:.3f}, accuracy {right / 300:.3f}")
