"""A small U-Net labels the ground of aerial tiles; its raw class scores go straight into NLLLoss.

nn.NLLLoss expects log-probabilities, but the last 1x1 convolution returns plain scores. The loss
falls without a floor, far below zero, because the scores only have to grow; the masks suffer.
The place is the loss (the log-softmax after `head` is missing).
"""

import numpy as np
import torch
from data import arguments
from scipy.ndimage import gaussian_filter
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "missing_softmax"
ACCEPT = ()
PLACE = ("loss", "head")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

GROUND = ["water", "field", "forest", "rock"]
PALETTE = np.array([[0.1, 0.2, 0.5], [0.7, 0.6, 0.2], [0.2, 0.5, 0.2], [0.5, 0.45, 0.4]])


class TileDataset(Dataset):
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        heights = gaussian_filter(rng.normal(size=(n, 24, 24)), (0, 3.5, 3.5))
        self.masks = np.digitize(heights, np.quantile(heights, [0.25, 0.5, 0.75]))
        noise = rng.normal(0, 0.22, (n, 24, 24, 3))
        noise[self.masks == 2] += rng.normal(0, 0.2, (n, 24, 24, 1))[self.masks == 2]
        light = rng.uniform(0.8, 1.2, (n, 1, 1, 1))
        self.tiles = (PALETTE[self.masks] * light + noise - 0.4) / 0.3

    def __len__(self):
        return len(self.tiles)

    def __getitem__(self, i):
        tile = torch.tensor(self.tiles[i], dtype=torch.float32).permute(2, 0, 1)
        return tile, torch.tensor(self.masks[i])


def double_conv(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
        nn.Conv2d(outputs, outputs, 3, padding=1),
        nn.ReLU(),
    )


class UNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.down = double_conv(3, 8)
        self.middle = double_conv(8, 16)
        self.up = nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.merge = double_conv(16, 8)
        self.head = nn.Conv2d(8, classes, 1)

    def forward(self, x):
        skip = self.down(x)
        x = self.up(self.middle(nn.functional.max_pool2d(skip, 2)))
        x = self.head(self.merge(torch.cat([x, skip], 1)))
        return x.log_softmax(1) if healthy else x


def evaluate(model, loader):
    model.eval()
    hits = torch.zeros(len(GROUND))
    union = torch.zeros(len(GROUND))
    with torch.no_grad():
        for tiles, masks in loader:
            guess = model(tiles).argmax(1)
            for k in range(len(GROUND)):
                hits[k] += ((guess == k) & (masks == k)).sum()
                union[k] += ((guess == k) | (masks == k)).sum()
    return hits / union


train_loader = DataLoader(TileDataset(480, seed), batch_size=16, shuffle=True)
valid_loader = DataLoader(TileDataset(120, seed + 500), batch_size=40)
model = UNet(len(GROUND))
criterion = nn.NLLLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(6):
    model.train()
    running_loss = 0.0
    for tiles, masks in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(tiles), masks)
        loss.backward()
        optimizer.step()
        running_loss += loss.item()
    iou = evaluate(model, valid_loader)
    shares = ", ".join(f"{name} {value:.2f}" for name, value in zip(GROUND, iou, strict=True))
    print(
        f"epoch {epoch + 1} loss {running_loss / len(train_loader):.3f} IoU {iou.mean():.3f}",
        f"({shares})",
    )
