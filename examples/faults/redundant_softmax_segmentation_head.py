"""Segmenting shapes into five classes; the head ends in Softmax2d and CrossEntropyLoss has its own
softmax.

The figure of the paper shows a softmax after the last convolution. Small classes get next to no
gradient and the loss stays above 0.9, though it falls (silent). The place is the input of the loss.
Exact: the channels of every pixel sum to one.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "redundant_softmax"
ACCEPT = ()
PLACE = ("loss*", "head*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
SIZE, CLASSES = 24, 5


def scenes(n):
    """Background, disc, bar, cross and dot; grey values overlap, the form tells."""
    yy, xx = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    masks = torch.zeros(n, SIZE, SIZE, dtype=torch.long)
    for i in range(n):
        for kind in (1, 2, 3, 4):
            if torch.rand(1) < 0.25:
                continue
            cy, cx = torch.randint(4, SIZE - 4, (2,))
            dy, dx = (yy - cy).abs(), (xx - cx).abs()
            if kind == 1:
                form = dy**2 + dx**2 <= 14
            elif kind == 2:
                form = (dy <= 1) & (dx <= 5)
            elif kind == 3:
                form = ((dy <= 0) & (dx <= 3)) | ((dx <= 0) & (dy <= 3))
            else:
                form = (dy <= 1) & (dx <= 1)
            masks[i][form] = kind
    grey = torch.tensor([0.0, 1.0, 0.8, 1.3, 1.6])[masks]
    return (grey + 0.25 * torch.randn(n, SIZE, SIZE) - 0.15).unsqueeze(1), masks


def block(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU())


class MiniUNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = block(1, 12)
        self.pool = nn.MaxPool2d(2)
        self.deep = nn.Sequential(block(12, 24), block(24, 24))
        self.up = nn.Upsample(scale_factor=2, mode="nearest")
        self.join = block(36, 16)
        head = [nn.Conv2d(16, CLASSES, 1)]
        if not healthy:
            head.append(nn.Softmax2d())
        self.head = nn.Sequential(*head)

    def forward(self, x):
        skip = self.down(x)
        deep = self.up(self.deep(self.pool(skip)))
        return self.head(self.join(torch.cat([skip, deep], 1)))


def mean_iou(model, loader):
    model.eval()
    both, either = torch.zeros(CLASSES), torch.zeros(CLASSES)
    with torch.no_grad():
        for image, mask in loader:
            guess = model(image).argmax(1)
            for c in range(CLASSES):
                both[c] += ((guess == c) & (mask == c)).sum()
                either[c] += ((guess == c) | (mask == c)).sum()
    return (both / either.clamp(min=1)).mean().item()


train_loader = DataLoader(TensorDataset(*scenes(320)), batch_size=16, shuffle=True)
val_loader = DataLoader(TensorDataset(*scenes(80)), batch_size=40)
model = MiniUNet()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9)
for epoch in range(6):
    model.train()
    total = 0.0
    for image, mask in train_loader:
        loss = criterion(model(image), mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(
        f"epoch {epoch} loss {total / len(train_loader):.3f} mIoU {mean_iou(model, val_loader):.3f}"
    )
