"""A U-Net outlines cell nuclei with Adam at lr=1e-6, and its last mask is as random as its first.

The rate is that of a notebook which fine-tuned; from random weights the loss creeps down in the
third digit. The twin uses 5e-3. The place is the optimizer, its learning rate.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "learning_rate_too_low"
ACCEPT = ("bad_optimizer_settings",)
PLACE = ("learning_rate", "optimizer")
SILENT = False
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


class Config:
    side = 16
    batch_size = 20
    epochs = 5
    lr = 5e-3 if healthy else 1e-6


def stain_slides(n, generator):
    axis = torch.linspace(-1, 1, Config.side)
    y, x = torch.meshgrid(axis, axis, indexing="ij")
    slides = torch.zeros(n, 1, Config.side, Config.side)
    masks = torch.zeros_like(slides)
    for _ in range(4):
        cx, cy = (1.6 * torch.rand(n, 1, 1, 1, generator=generator) - 0.8 for _ in range(2))
        radius = 0.18 + 0.17 * torch.rand(n, 1, 1, 1, generator=generator)
        distance = ((x - cx) ** 2 + (y - cy) ** 2).sqrt()
        masks = torch.maximum(masks, (distance < radius).float())
        slides = torch.maximum(slides, torch.sigmoid(20 * (radius - distance)))
    light = 0.5 * (torch.rand(n, 1, 1, 1, generator=generator) - 0.5) * x
    slides = slides + light + 0.25 * torch.randn(slides.shape, generator=generator)
    return (slides - 0.3) / 0.5, masks


def double_conv(n_in, n_out):
    return nn.Sequential(
        nn.Conv2d(n_in, n_out, 3, padding=1), nn.BatchNorm2d(n_out), nn.ReLU(inplace=True)
    )


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1, self.down2 = double_conv(1, 8), double_conv(8, 16)
        self.bottom = double_conv(16, 24)
        self.up2, self.up1 = nn.ConvTranspose2d(24, 16, 2, 2), nn.ConvTranspose2d(16, 8, 2, 2)
        self.conv2, self.conv1 = double_conv(32, 16), double_conv(16, 8)
        self.pool, self.outc = nn.MaxPool2d(2), nn.Conv2d(8, 1, 1)

    def forward(self, x):
        first = self.down1(x)
        second = self.down2(self.pool(first))
        x = self.up2(self.bottom(self.pool(second)))
        x = self.up1(self.conv2(torch.cat([second, x], dim=1)))
        return self.outc(self.conv1(torch.cat([first, x], dim=1)))


def dice_score(logits, masks):
    guess = (logits > 0).float()
    return (2 * (guess * masks).sum() / (guess.sum() + masks.sum()).clamp(min=1)).item()


generator = torch.Generator().manual_seed(seed + 71)
train_loader = DataLoader(
    TensorDataset(*stain_slides(800, generator)), Config.batch_size, shuffle=True
)
val_slides, val_masks = stain_slides(150, generator)
model = UNet()
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=Config.lr)
for epoch in range(Config.epochs):
    model.train()
    running = 0.0
    for slides, masks in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(slides), masks)
        loss.backward()
        optimizer.step()
        running += loss.item()
    model.eval()
    with torch.no_grad():
        logits = model(val_slides)
    print(f"Epoch {epoch + 1}/{Config.epochs} train loss {running / len(train_loader):.4f} "
          f"val loss {criterion(logits, val_masks).item():.4f} "
          f"dice {dice_score(logits, val_masks):.3f}")  # fmt: skip
