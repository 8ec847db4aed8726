"""A small U-Net for vessels with a hand-written Dice and BCE loss that applies a second sigmoid.

The person took over a loss class from a kernel; it turns its inputs into probabilities by itself.
Their U-Net, from another repository, ends in a sigmoid already. Probabilities stay between 0.5 and
0.73, the loss falls a bit and stays high, and each pixel counts as a vessel. The place is the loss.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "redundant_sigmoid"
ACCEPT = ("output_activation_range",)
PLACE = ("loss", "model", "final*")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

SIDE = 24


def vessel_pictures(n, generator):
    """Bent bright lines of changing width on a ground with blobs; the mask is the line."""
    grid = torch.arange(SIDE, dtype=torch.float32)
    y, x = torch.meshgrid(grid, grid, indexing="ij")
    r = torch.rand(n, 8, 1, 1, generator=generator)
    middle = 5 + 14 * r[:, 0] + 5 * torch.sin(x / (3 + 4 * r[:, 1]) + 6.28 * r[:, 2])
    masks = ((y - middle).abs() < 0.9 + 1.3 * r[:, 3]).float()
    blobs = torch.exp(-((x - 24 * r[:, 4]) ** 2 + (y - 24 * r[:, 5]) ** 2) / (4 + 20 * r[:, 6]))
    pictures = 0.8 * masks + 0.8 * blobs + 0.45 * torch.randn(n, SIDE, SIDE, generator=generator)
    pictures = (pictures - pictures.mean()) / pictures.std()
    return pictures.unsqueeze(1), masks.unsqueeze(1)


def double_conv(inside, outside):
    return nn.Sequential(
        nn.Conv2d(inside, outside, 3, padding=1),
        nn.BatchNorm2d(outside),
        nn.ReLU(),
        nn.Conv2d(outside, outside, 3, padding=1),
        nn.BatchNorm2d(outside),
        nn.ReLU(),
    )


class UNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.down = double_conv(1, width)
        self.bottom = double_conv(width, 2 * width)
        self.up = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.merge = double_conv(2 * width, width)
        layers = [nn.Conv2d(width, 1, 1)]
        if not healthy:
            layers.append(nn.Sigmoid())
        self.final = nn.Sequential(*layers)

    def forward(self, pictures):
        fine = self.down(pictures)
        coarse = self.up(self.bottom(F.max_pool2d(fine, 2)))
        return self.final(self.merge(torch.cat([fine, coarse], 1)))


class DiceBCELoss(nn.Module):
    def __init__(self, smooth=1.0):
        super().__init__()
        self.smooth = smooth

    def forward(self, inputs, targets):
        p = (1 / (1 + torch.exp(-inputs))).flatten(1).clamp(1e-6, 1 - 1e-6)
        t = targets.flatten(1)
        overlap = (p * t).sum(1)
        dice = 1 - (2 * overlap + self.smooth) / (p.sum(1) + t.sum(1) + self.smooth)
        bce = -(t * p.log() + (1 - t) * (1 - p).log()).mean(1)
        return (dice + bce).mean()


def dice_score(outputs, masks):
    marked = (torch.sigmoid(outputs) > 0.5).float()
    overlap = (marked * masks).sum((1, 2, 3))
    return (2 * overlap / (marked.sum((1, 2, 3)) + masks.sum((1, 2, 3)))).mean().item()


def main():
    generator = torch.Generator().manual_seed(50 + seed)
    train = DataLoader(TensorDataset(*vessel_pictures(480, generator)), 24, shuffle=True)
    val_pictures, val_masks = vessel_pictures(160, generator)
    model = UNet()
    criterion = DiceBCELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(1, 13):
        model.train()
        losses = []
        for pictures, masks in train:
            optimizer.zero_grad()
            loss = criterion(model(pictures), masks)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            outputs = model(val_pictures)
            val_loss = criterion(outputs, val_masks).item()
        print(
            f"epoch {epoch:2d}  loss {sum(losses) / len(losses):.4f}  val loss {val_loss:.4f}  "
            f"val dice {dice_score(outputs, val_masks):.4f}"
        )


if __name__ == "__main__":
    main()
