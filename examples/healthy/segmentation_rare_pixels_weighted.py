"""Segmentation of thin cracks in concrete: four pixels in a hundred are cracks, and weigh twenty
times.

Many images have no crack at all; the weighted cross-entropy is joined by a soft Dice, over the
batch. Pixel accuracy is no measure here (96 % without looking); the overlap is. A small U-Net with
one skip.
"""

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

ODD = (
    "96 % of the targets are 0, a third of the images entirely; the loss weighs positives "
    "twentyfold and is above ln 2 at first"
)

_, seed = arguments(__doc__)
SIZE = 24


def walls(n, seed):
    g = torch.Generator().manual_seed(seed)
    axis = torch.arange(SIZE).float()
    slope, offset = 1.6 * torch.randn(n, 1, 1, generator=g), SIZE * torch.rand(n, 1, 1, generator=g)
    bend = 1.5 * torch.sin(axis[None, :, None] / 4 + 6 * torch.rand(n, 1, 1, generator=g))
    distance = (
        axis[None, None, :] - offset - slope * (axis[None, :, None] - SIZE / 2) - bend
    ).abs()
    distance = distance / (1 + slope**2).sqrt()
    cracked = (torch.rand(n, 1, 1, generator=g) < 0.67).float()
    mask = (distance < 0.6).float() * cracked
    coarse = F.interpolate(torch.randn(n, 1, 4, 4, generator=g), SIZE, mode="bilinear")[:, 0]
    image = 0.6 * coarse + 0.35 * torch.randn(n, SIZE, SIZE, generator=g) - 1.4 * mask
    return TensorDataset(image[:, None], mask[:, None])


class SmallUNet(nn.Module):
    def __init__(self, width=12):
        super().__init__()

        def conv(a, b):
            return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.GroupNorm(4, b), nn.ReLU())

        self.down, self.middle, self.up = (
            conv(1, width),
            conv(width, 2 * width),
            conv(3 * width, width),
        )
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        fine = self.down(x)
        coarse = self.middle(F.max_pool2d(fine, 2))
        return self.out(self.up(torch.cat([fine, F.interpolate(coarse, scale_factor=2)], 1)))


def loss_fn(logits, mask):
    bce = F.binary_cross_entropy_with_logits(logits, mask, pos_weight=torch.tensor(20.0))
    p = torch.sigmoid(logits)
    return bce + 1 - (2 * (p * mask).sum() + 1) / (p.sum() + mask.sum() + 1)


train_loader = DataLoader(walls(720, seed), batch_size=24, shuffle=True)
val_x, val_y = walls(200, 4000 + seed).tensors
model = SmallUNet()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 8)
for epoch in range(8):
    model.train()
    total = 0.0
    for image, mask in train_loader:
        loss = loss_fn(model(image), mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(train_loader)
    schedule.step()
    model.eval()
    with torch.no_grad():
        logits = model(val_x)
    found = logits > 0
    iou = (found & (val_y > 0)).sum() / (found | (val_y > 0)).sum()
    recall = (found & (val_y > 0)).sum() / (val_y > 0).sum()
    print(
        f"epoch {epoch} train {total:.4f} val {loss_fn(logits, val_y).item():.4f} "
        f"IoU {iou:.3f} recall {recall:.3f} (cracks {val_y.mean():.3f} of the pixels)"
    )
