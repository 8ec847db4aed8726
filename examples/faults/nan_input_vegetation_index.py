"""A U-Net finds orchards in satellite chips; the vegetation index is 0 / 0 at no-data pixels.

Chips from the edge of the scene are padded with zeros. There (nir - red) / (nir + red) is NaN, and
one such chip in a batch makes the loss and then all weights NaN.
The place is the input (the third channel, the index).
"""

import numpy as np
import torch
from data import arguments
from scipy.ndimage import gaussian_filter
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "nan_input"
ACCEPT = ("division_by_zero_norm",)
PLACE = ("input",)
SILENT = False
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


class ChipDataset(Dataset):
    """Red and near infrared of 20 x 20 pixels; orchards reflect less red and more infrared."""

    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        ground = gaussian_filter(rng.normal(size=(n, 20, 20)), (0, 3, 3))
        self.masks = (ground > np.quantile(ground, 0.65)).astype(np.float32)
        light = gaussian_filter(rng.normal(size=(n, 20, 20)), (0, 5, 5)) * 3 + 1
        light = light.clip(0.4, 1.8)
        self.red = (0.30 - 0.12 * self.masks + rng.normal(0, 0.05, ground.shape)).clip(0.02) * light
        self.nir = (0.35 + 0.15 * self.masks + rng.normal(0, 0.07, ground.shape)).clip(0.02) * light
        edge = rng.random(n) < 0.1
        for band in (self.red, self.nir, self.masks):
            band[edge, :, 14:] = 0

    def __len__(self):
        return len(self.masks)

    def __getitem__(self, i):
        red, nir = self.red[i], self.nir[i]
        with np.errstate(invalid="ignore"):
            ndvi = (nir - red) / (nir + red + 1e-6 if healthy else nir + red)
        chip = np.stack([(red - 0.25) / 0.12, (nir - 0.4) / 0.16, (ndvi - 0.2) / 0.2])
        return torch.tensor(chip, dtype=torch.float32), torch.tensor(self.masks[i])


def block(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(outputs, outputs, 3, padding=1),
        nn.ReLU(),
    )


class MiniUNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder1, self.encoder2 = block(3, 8), block(8, 16)
        self.pool = nn.MaxPool2d(2)
        self.upsample = nn.Upsample(scale_factor=2)
        self.decoder = block(24, 8)
        self.out = nn.Conv2d(8, 1, 1)

    def forward(self, x):
        fine = self.encoder1(x)
        coarse = self.upsample(self.encoder2(self.pool(fine)))
        return self.out(self.decoder(torch.cat([fine, coarse], 1))).squeeze(1)


def dice(logits, masks):
    guess = (logits > 0).float()
    return (2 * (guess * masks).sum() / (guess.sum() + masks.sum())).item()


def fit(model, train_loader, valid_loader, epochs):
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for epoch in range(epochs):
        model.train()
        losses = []
        for chips, masks in train_loader:
            loss = criterion(model(chips), masks)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        scheduler.step()
        model.eval()
        with torch.no_grad():
            scores = [dice(model(chips), masks) for chips, masks in valid_loader]
        print(f"epoch {epoch + 1}: loss {np.mean(losses):.4f} dice {np.mean(scores):.4f}")


fit(
    MiniUNet(),
    DataLoader(ChipDataset(480, seed), 16, shuffle=True),
    DataLoader(ChipDataset(100, seed + 900), 50),
    epochs=7,
)
