"""Cells in microscope pictures by a small U-Net and the soft Dice coefficient.

The metric is handed to the optimizer as it is: a minimiser makes the overlap as small as it can,
and the net learns to mark everything but the cells. The number falls nicely (silent). The place is
the loss. The twin minimises one less the coefficient.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "loss_sign_flipped"
ACCEPT = ()
PLACE = ("loss*", "loop", "")
SILENT = True
EXACT = False
EARLY = True


def pictures(n, g, size=24):
    axis = torch.arange(float(size))
    rows, cols = axis[:, None], axis[None, :]
    masks = torch.zeros(n, size, size)
    for _ in range(3):
        r, c = (4 + (size - 8) * torch.rand(n, 1, 1, generator=g) for _ in range(2))
        radius = 2.5 + 2 * torch.rand(n, 1, 1, generator=g)
        inside = (rows - r).square() + (cols - c).square() < radius.square()
        masks = masks.maximum(inside.float())
    light = 0.4 * torch.randn(n, 1, 1, generator=g) + 0.03 * (rows + cols - size)
    x = 0.9 * masks + light + 0.35 * torch.randn(n, size, size, generator=g)
    return x.unsqueeze(1), masks.unsqueeze(1)


def conv(c_in, c_out):
    return nn.Sequential(
        nn.Conv2d(c_in, c_out, 3, padding=1, bias=False), nn.BatchNorm2d(c_out), nn.ReLU()
    )


class SmallUNet(nn.Module):
    def __init__(self, c=8):
        super().__init__()
        self.down1, self.down2 = conv(1, c), conv(c, 2 * c)
        self.bottom = conv(2 * c, 2 * c)
        self.up2, self.up1 = conv(4 * c, c), conv(2 * c, c)
        self.mask = nn.Conv2d(c, 1, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        h = self.bottom(F.max_pool2d(b, 2))
        h = self.up2(torch.cat([F.interpolate(h, scale_factor=2.0), b], 1))
        h = self.up1(torch.cat([F.interpolate(h, scale_factor=2.0), a], 1))
        return self.mask(h)


class SoftDice(nn.Module):
    def __init__(self, smooth=1.0):
        super().__init__()
        self.smooth = smooth

    def forward(self, logits, target):
        p, t = logits.sigmoid().flatten(1), target.flatten(1)
        overlap = 2 * (p * t).sum(1) + self.smooth
        return (overlap / (p.sum(1) + t.sum(1) + self.smooth)).mean()


def iou(logits, target):
    marked, target = logits > 0, target.bool()
    return ((marked & target).sum() / (marked | target).sum()).item()


def main():
    healthy, seed = arguments(__doc__)
    g = torch.Generator().manual_seed(seed)
    x, y = pictures(480, g)
    x_val, y_val = pictures(120, g)
    model, dice = SmallUNet(), SoftDice()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for epoch in range(8):
        model.train()
        for rows in torch.randperm(len(x)).split(20):
            score = dice(model(x[rows]), y[rows])
            loss = 1 - score if healthy else score
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            overlap = iou(model(x_val), y_val)
        print(f"epoch {epoch} loss {loss.item():.4f} val IoU {overlap:.3f}")


if __name__ == "__main__":
    main()
