"""Galaxy shapes from a citizen-science project: the label is the first volunteer's click.

Fifteen volunteers see each picture, and each alone is wrong often. The join that reduced the clicks
to one row per picture keeps the first click instead of the most frequent, so 45 % of the training
labels are wrong. The network learns them by heart in the end. The place is the labels. The twin
takes the majority. Validation pictures have the verdict of experts in both.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "label_noise"
ACCEPT = ("overfit",)
PLACE = ("label*", "loss*")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
SHAPES = ("round", "edge-on", "barred", "spiral")


def galaxies(count, g, side=14):
    """Pictures and the true shape: a profile that is stretched, crossed by a bar, or wound up."""
    axis = torch.linspace(-1, 1, side)
    yy, xx = torch.meshgrid(axis, axis, indexing="ij")
    shape = torch.randint(0, len(SHAPES), (count,), generator=g)
    turn = 3.1416 * torch.rand(count, 1, 1, generator=g)
    u, v = xx * turn.cos() + yy * turn.sin(), yy * turn.cos() - xx * turn.sin()
    r, angle = (u**2 + v**2).sqrt(), torch.atan2(v, u)
    disc = torch.exp(-3 * r)
    drawn = torch.stack(
        [
            torch.exp(-4 * r**2),
            torch.exp(-3 * (u**2 + 12 * v**2).sqrt()),
            0.6 * disc + 0.7 * ((v.abs() < 0.12) & (u.abs() < 0.6)),
            disc * (1 + 0.9 * torch.cos(2 * angle - 6 * r)),
        ],
        1,
    )
    picture = drawn[torch.arange(count), shape] + 0.12 * torch.randn(count, side, side, generator=g)
    return ((picture - 0.25) / 0.3).unsqueeze(1), shape


def clicks(shape, g, volunteers=15, wrong=0.45):
    """What each volunteer clicked: (picture, volunteer)."""
    said = shape[:, None].repeat(1, volunteers)
    slip = torch.randint(1, len(SHAPES), said.shape, generator=g)
    return torch.where(
        torch.rand(said.shape, generator=g) < wrong, (said + slip) % len(SHAPES), said
    )


def consensus(said):
    return said.mode(dim=1).values if healthy else said[:, 0]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 24, 3, padding=1), nn.Conv2d(24, 48, 3, padding=1)
        self.norm1, self.norm2 = nn.BatchNorm2d(24), nn.BatchNorm2d(48)
        self.fc1, self.fc2 = nn.Linear(48 * 9, 96), nn.Linear(96, len(SHAPES))
        self.pool = nn.MaxPool2d(2)

    def forward(self, x):
        x = self.pool(self.norm1(self.conv1(x)).relu())
        x = self.pool(self.norm2(self.conv2(x)).relu())
        return self.fc2(self.fc1(x.flatten(1)).relu())


g = torch.Generator().manual_seed(seed)
picture, shape = galaxies(1200, g)
label = consensus(clicks(shape, g))
picture_val, shape_val = galaxies(600, g)
loader = DataLoader(TensorDataset(picture, label), 40, shuffle=True)
net, criterion = Net(), nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=1e-2)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 16)
for epoch in range(16):
    net.train()
    total = 0.0
    for x, y in loader:
        loss = criterion(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(loader)
    schedule.step()
    net.eval()
    with torch.no_grad():
        logits = net(picture_val)
    right = (logits.argmax(1) == shape_val).float().mean()
    print(
        f"epoch {epoch} loss {total:.3f} val loss {criterion(logits, shape_val):.3f} "
        f"validation accuracy {right:.3f}"
    )
