"""A one-stage detector finds discs in pictures of 32 by 32 pixels on a grid of 8 by 8 cells: an
objectness and two offsets for each cell.

The head already applies the sigmoid to the objectness, the loss is BCEWithLogitsLoss. The sigmoid
is applied twice, so no cell can be held for empty (its probability never falls below a half): the
loss settles far above zero, and at the usual threshold nearly every cell is a detection. The place
is the head.
"""

import torch
from data import arguments
from torch import nn

KIND = "redundant_sigmoid"
ACCEPT = ()
PLACE = ("head*", "loss")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def pictures(n, g, side=32, cells=8, discs=3):
    size = side // cells
    yy, xx = torch.meshgrid(torch.arange(side) + 0.5, torch.arange(side) + 0.5, indexing="ij")
    image = 0.3 * torch.randn(n, 1, side, side, generator=g)
    objects, offsets = torch.zeros(n, cells, cells), torch.zeros(n, 2, cells, cells)
    for i in range(n):
        for _ in range(int(torch.randint(1, discs + 1, (), generator=g))):
            cy, cx = (3 + torch.rand(2, generator=g) * (side - 6)).tolist()
            image[i, 0] += ((yy - cy) ** 2 + (xx - cx) ** 2 < 2.5**2).float()
            r, c = int(cy // size), int(cx // size)
            objects[i, r, c] = 1
            offsets[i, :, r, c] = torch.tensor([cy / size - r, cx / size - c])
    return image, objects, offsets


class Detector(nn.Module):
    def __init__(self, c=12):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, c, 5, padding=2),
            nn.BatchNorm2d(c),
            nn.LeakyReLU(0.1),
            nn.MaxPool2d(2),
            nn.Conv2d(c, 2 * c, 3, padding=1),
            nn.BatchNorm2d(2 * c),
            nn.LeakyReLU(0.1),
            nn.MaxPool2d(2),
            nn.Conv2d(2 * c, 2 * c, 3, padding=1),
            nn.BatchNorm2d(2 * c),
            nn.LeakyReLU(0.1),
        )
        self.head = nn.Conv2d(2 * c, 3, 1)

    def forward(self, x):
        out = self.head(self.backbone(x))
        objectness, offsets = out[:, 0], out[:, 1:].sigmoid()
        if not healthy:
            objectness = objectness.sigmoid()
        return objectness, offsets


class DetectionLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.bce = nn.BCEWithLogitsLoss()
        self.l1 = nn.SmoothL1Loss(reduction="none")

    def forward(self, objectness, offsets, objects, where):
        found = objects.unsqueeze(1)
        box = (self.l1(offsets, where) * found).sum() / found.sum().clamp(min=1)
        return self.bce(objectness, objects) + box


g = torch.Generator().manual_seed(seed)
train, val = pictures(600, g), pictures(150, g)
model, criterion = Detector(), DetectionLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 12)
for epoch in range(12):
    model.train()
    total = 0.0
    for rows in torch.randperm(600, generator=g).split(20):
        image, objects, where = (t[rows] for t in train)
        loss = criterion(*model(image), objects, where)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / 30
    schedule.step()
    model.eval()
    with torch.no_grad():
        objectness, offsets = model(val[0])
        val_loss = criterion(objectness, offsets, *val[1:]).item()
        said = (torch.sigmoid(objectness) > 0.5).float()
        f1 = (2 * (said * val[1]).sum() / (said.sum() + val[1].sum())).item()
    print(f"epoch {epoch:2d} train {total:.4f} val {val_loss:.4f} detections F1 {f1:.3f}")
