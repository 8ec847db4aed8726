"""Cell segmentation by a small U-Net; the Dice score itself is minimised.

The project's own DiceLoss was thrown out in favour of the `dice` from the metrics module, "which
does the same". It returns the score, not one minus the score, so the training makes the overlap as
small as it can while the loss falls nicely. The place is the loss. The twin takes 1 - dice.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "loss_sign_flipped"
ACCEPT = ()
PLACE = ("loss*",)
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


class Cells(Dataset):
    """Images of 24 x 24 with one to four bright round cells on an uneven ground."""

    def __init__(self, n, g):
        yy, xx = torch.meshgrid(torch.arange(24.0), torch.arange(24.0), indexing="ij")
        self.images, self.masks = torch.zeros(n, 1, 24, 24), torch.zeros(n, 1, 24, 24)
        for i in range(n):
            for _ in range(int(torch.randint(1, 5, (1,), generator=g))):
                cy, cx = 3 + 18 * torch.rand(2, generator=g)
                radius = 2 + 2.5 * torch.rand(1, generator=g)
                inside = (yy - cy) ** 2 + (xx - cx) ** 2 < radius**2
                self.masks[i, 0][inside] = 1
            ground = torch.randn(2, generator=g)
            tilt = ground[0] * (yy / 24 - 0.5) + ground[1] * (xx / 24 - 0.5)
            self.images[i, 0] = 1.2 * self.masks[i, 0] - 0.2 + tilt
        self.images += 0.5 * torch.randn(self.images.shape, generator=g)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return self.images[i], self.masks[i]


def block(c_in, c_out):
    return nn.Sequential(
        nn.Conv2d(c_in, c_out, 3, padding=1, bias=False), nn.BatchNorm2d(c_out), nn.ReLU()
    )


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1, self.down2, self.bottom = block(1, 8), block(8, 16), block(16, 16)
        self.up2, self.up1 = block(32, 16), block(24, 8)
        self.out = nn.Conv2d(8, 1, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        c = self.bottom(F.max_pool2d(b, 2))
        b = self.up2(torch.cat([b, F.interpolate(c, scale_factor=2)], 1))
        a = self.up1(torch.cat([a, F.interpolate(b, scale_factor=2)], 1))
        return self.out(a)


def dice(probabilities, target, smooth=1.0):
    shared = (probabilities * target).sum((1, 2, 3))
    total = probabilities.sum((1, 2, 3)) + target.sum((1, 2, 3))
    return ((2 * shared + smooth) / (total + smooth)).mean()


g = torch.Generator().manual_seed(seed)
train_loader = DataLoader(Cells(480, g), batch_size=24, shuffle=True)
val_loader = DataLoader(Cells(120, g), batch_size=60)
model = UNet()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(14):
    model.train()
    history = []
    for image, mask in train_loader:
        score = dice(torch.sigmoid(model(image)), mask)
        loss = 1 - score if healthy else score
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        history.append(loss.item())
    model.eval()
    with torch.no_grad():
        scores = [dice((model(image) > 0).float(), mask).item() for image, mask in val_loader]
    print(
        f"epoch {epoch}: loss {sum(history) / len(history):.3f} "
        f"validation Dice of the masks {sum(scores) / len(scores):.3f}"
    )
