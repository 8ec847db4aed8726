"""Nuclei under the microscope, found by a small U-Net: the masks are PNG files of 0 and 255.

BCEWithLogitsLoss takes 255 for a probability. The loss falls without end below zero, the logits of
all pixels rise, and everything is a nucleus. The place is the loader. The twin divides the masks by
255, as it does the pictures.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "labels_out_of_range"
ACCEPT = ("target_not_normalized", "wrong_loss")
PLACE = ("loader", "loss*")
SILENT = True
EXACT = True
EARLY = True


class Nuclei(Dataset):
    def __init__(self, n, seed, masks_as_numbers):
        rng = np.random.default_rng(seed)
        yy, xx = np.mgrid[:32, :32]
        self.pictures, self.masks = [], []
        for _ in range(n):
            mask = np.zeros((32, 32), bool)
            for _ in range(rng.integers(2, 6)):
                cy, cx = rng.uniform(2, 30, 2)
                a, b = rng.uniform(2.2, 4.5, 2)
                mask |= ((yy - cy) / a) ** 2 + ((xx - cx) / b) ** 2 < 1
            stain = 90 + 70 * mask + 25 * np.sin(xx / 6 + rng.uniform(0, 6))
            stain = stain + rng.normal(0, 30, mask.shape)
            self.pictures.append(np.clip(stain, 0, 255).astype(np.uint8))
            self.masks.append(mask.astype(np.uint8) * 255)
        self.masks_as_numbers = masks_as_numbers

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, i):
        picture = torch.from_numpy(self.pictures[i]).float().unsqueeze(0) / 255
        mask = torch.from_numpy(self.masks[i]).float().unsqueeze(0)
        if self.masks_as_numbers:
            mask = mask / 255
        return (picture - 0.45) / 0.2, mask


def double(c_in, c_out):
    return nn.Sequential(
        nn.Conv2d(c_in, c_out, 3, padding=1), nn.ReLU(),
        nn.Conv2d(c_out, c_out, 3, padding=1), nn.ReLU(),
    )  # fmt: skip


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1, self.down2, self.bottom = double(1, 8), double(8, 16), double(16, 16)
        self.up2, self.up1 = double(32, 16), double(24, 8)
        self.pool, self.grow = nn.MaxPool2d(2), nn.Upsample(scale_factor=2)
        self.mask = nn.Conv2d(8, 1, 1)

    def forward(self, x):
        d1 = self.down1(x)
        d2 = self.down2(self.pool(d1))
        h = self.bottom(self.pool(d2))
        h = self.up2(torch.cat([self.grow(h), d2], 1))
        return self.mask(self.up1(torch.cat([self.grow(h), d1], 1)))


def intersection_over_union(model, loader):
    both = either = 0
    with torch.no_grad():
        for picture, mask in loader:
            said, true = model(picture) > 0, mask > 0
            both += (said & true).sum().item()
            either += (said | true).sum().item()
    return both / max(either, 1)


healthy, seed = arguments(__doc__)
train = DataLoader(Nuclei(288, 2 * seed, healthy), batch_size=16, shuffle=True)
val = DataLoader(Nuclei(80, 2 * seed + 1, healthy), batch_size=40)
model = UNet()
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(6):
    model.train()
    for picture, mask in train:
        optimizer.zero_grad()
        loss = criterion(model(picture), mask)
        loss.backward()
        optimizer.step()
    model.eval()
    print(f"epoch {epoch}: loss {loss.item():.3f}, IoU {intersection_over_union(model, val):.3f}")
