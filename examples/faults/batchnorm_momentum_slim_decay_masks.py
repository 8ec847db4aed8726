"""A segmentation net carries a TF-slim `decay=0.999` over as BatchNorm momentum 0.001, for a run of
180 steps.

After 180 steps the running statistics are still mostly their initial 0 and 1. Training, which
uses the batch's own, goes well; the masks in eval mode are poor. The place is every batch norm.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "batchnorm_momentum"
ACCEPT = ()
PLACE = ("down*", "up*", "*norm*", "*bn*", "")
SILENT = True
EXACT = False
EARLY = False

healthy, _ = arguments(__doc__)
SLIM_DECAY = 0.9 if healthy else 0.999


def conv_bn(i, o, stride=1):
    return nn.Sequential(
        nn.Conv2d(i, o, 3, stride, 1, bias=False),
        nn.BatchNorm2d(o, momentum=1 - SLIM_DECAY),
        nn.ReLU(inplace=True),
    )


class TinyUNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1 = conv_bn(1, 12)
        self.down2 = conv_bn(12, 24, 2)
        self.up1 = conv_bn(24, 12)
        self.up2 = conv_bn(24, 12)
        self.mask = nn.Conv2d(12, 1, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.up1(self.down2(a))
        b = nn.functional.interpolate(b, scale_factor=2)
        return self.mask(self.up2(torch.cat([a, b], 1)))


def cells(n, size=16):
    """Noisy pictures with two dark round cells, and their masks."""
    yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    mask = torch.zeros(n, size, size, dtype=torch.bool)
    for _ in range(2):
        cy, cx = torch.rand(2, n, 1, 1) * (size - 6) + 3
        radius = 2 + 2 * torch.rand(n, 1, 1)
        mask |= (yy - cy) ** 2 + (xx - cx) ** 2 < radius**2
    image = torch.randn(n, size, size) - 1.6 * mask
    return ((image - image.mean()) / image.std())[:, None], mask[:, None].float()


def dice(model, x, y):
    model.eval()
    with torch.no_grad():
        guess = (model(x) > 0).float()
    model.train()
    return (2 * (guess * y).sum() / (guess.sum() + y.sum() + 1e-6)).item()


x, y = cells(720)
x_val, y_val = cells(200)
loader = DataLoader(TensorDataset(x, y), batch_size=24, shuffle=True, drop_last=True)
model = TinyUNet()
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 6)
criterion = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(3.0))
for epoch in range(6):
    for image, mask in loader:
        optimizer.zero_grad()
        loss = criterion(model(image), mask)
        loss.backward()
        optimizer.step()
    schedule.step()
    print(f"epoch {epoch} loss {loss.item():.3f} val dice {dice(model, x_val, y_val):.3f}")
