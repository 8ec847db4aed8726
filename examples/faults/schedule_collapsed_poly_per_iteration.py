"""Segmentation with the "poly" rate of DeepLab: total_iters counts epochs, step() is called per
batch.

After as many batches as there were to be epochs the rate is exactly 0 and stays there. The twin
gives the number of batches. The loss has fallen a little by then (silent). The place is the
scheduler.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset

KIND = "schedule_collapsed"
ACCEPT = ()
PLACE = ("optimizer", "loop", "")
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)


class Tiles(Dataset):
    """Land cover: water, field and town differ by texture and colour."""

    def __init__(self, n):
        self.images, self.masks = [], []
        yy, xx = torch.meshgrid(torch.arange(24.0), torch.arange(24.0), indexing="ij")
        for _ in range(n):
            a, b = 6.283 * torch.rand(2)
            first = (xx - 12) * a.cos() + (yy - 12) * a.sin() > 6 * torch.rand(()) - 3
            second = (xx - 12) * b.cos() + (yy - 12) * b.sin() > 4
            mask = first.long() + (second & ~first).long() * 2
            level = torch.stack([-0.4 + 0 * xx, 0.3 + 0.5 * (xx * 1.3).sin(), 0.3 + 0 * xx])
            image = level.gather(0, mask.unsqueeze(0)) + 0.45 * torch.randn(1, 24, 24)
            self.images.append(image / 0.7)
            self.masks.append(mask)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return self.images[i], self.masks[i]


class SegNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(1, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU())
        self.bottom = nn.Sequential(
            nn.Conv2d(12, 24, 3, stride=2, padding=1),
            nn.BatchNorm2d(24),
            nn.ReLU(),
            nn.Conv2d(24, 24, 3, padding=2, dilation=2),
            nn.BatchNorm2d(24),
            nn.ReLU(),
        )
        self.classifier = nn.Conv2d(36, 3, 1)

    def forward(self, x):
        a = self.down(x)
        b = F.interpolate(self.bottom(a), scale_factor=2, mode="bilinear", align_corners=False)
        return self.classifier(torch.cat([a, b], 1))


def mean_iou(pred, mask):
    ious = [((pred == c) & (mask == c)).sum() / ((pred == c) | (mask == c)).sum() for c in range(3)]
    return torch.stack(ious).mean().item()


train_loader = DataLoader(Tiles(480), batch_size=16, shuffle=True)
val_images, val_masks = next(iter(DataLoader(Tiles(100), batch_size=100)))
EPOCHS = 7
net = SegNet()
optimizer = optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
total_iters = EPOCHS * len(train_loader) if healthy else EPOCHS
scheduler = optim.lr_scheduler.PolynomialLR(optimizer, total_iters=total_iters, power=0.9)

for epoch in range(1, EPOCHS + 1):
    net.train()
    losses = []
    for image, mask in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(image), mask)
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    net.eval()
    with torch.no_grad():
        out = net(val_images)
    print(
        f"Epoch {epoch}: loss={sum(losses) / len(losses):.4f} "
        f"val_loss={F.cross_entropy(out, val_masks).item():.4f} "
        f"mIoU={mean_iou(out.argmax(1), val_masks):.4f}"
    )
