"""A small U-Net has dropout of one half in all its double convolutions, not just in the middle.

The person read that the U-Net has dropout at the end of the contracting path, and put the layer
into the DoubleConv class that all five blocks share. Ten dropout layers of whole channels follow
each other in a net of few channels. The place is the dropout of the blocks.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "over_regularized"
ACCEPT = ()
PLACE = ("*drop*", "down*", "up*", "bottom*", "inc*", "model")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

SIZE = 24
DROPOUT = 0.5


def make_scans(n):
    rng = np.random.default_rng(910 + seed)
    rows, columns = np.mgrid[:SIZE, :SIZE]
    images = np.zeros((n, 1, SIZE, SIZE), np.float32)
    masks = np.zeros_like(images)
    for i in range(n):
        for _ in range(rng.integers(1, 4)):
            y, x, radius = *rng.uniform(4, SIZE - 4, 2), rng.uniform(2.5, 4.5)
            disc = (rows - y) ** 2 + (columns - x) ** 2 < radius**2
            images[i, 0][disc] = rng.uniform(0.7, 1.3)
            masks[i, 0][disc] = 1
        for _ in range(rng.integers(1, 4)):
            y, x = rng.integers(1, SIZE - 5, 2)
            if rng.random() < 0.5:
                images[i, 0, y, :] += 0.9
            else:
                images[i, 0, :, x] += 0.9
    images += rng.normal(0, 0.3, images.shape)
    images = (images - images.mean()) / images.std()
    return torch.from_numpy(images.astype(np.float32)), torch.from_numpy(masks)


class DoubleConv(nn.Module):
    def __init__(self, inputs, outputs, dropout):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.drop = nn.Dropout2d(dropout)

    def forward(self, x):
        x = self.drop(torch.relu(self.bn1(self.conv1(x))))
        return self.drop(torch.relu(self.bn2(self.conv2(x))))


class UNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        outer = 0.0 if healthy else DROPOUT
        middle = 0.1 if healthy else DROPOUT
        self.inc = DoubleConv(1, width, outer)
        self.down = DoubleConv(width, 2 * width, outer)
        self.bottom = DoubleConv(2 * width, 4 * width, middle)
        self.up1 = nn.ConvTranspose2d(4 * width, 2 * width, 2, stride=2)
        self.dec1 = DoubleConv(4 * width, 2 * width, outer)
        self.up2 = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.dec2 = DoubleConv(2 * width, width, outer)
        self.outc = nn.Conv2d(width, 1, 1)
        self.pool = nn.MaxPool2d(2)

    def forward(self, x):
        first = self.inc(x)
        second = self.down(self.pool(first))
        x = self.bottom(self.pool(second))
        x = self.dec1(torch.cat([self.up1(x), second], 1))
        x = self.dec2(torch.cat([self.up2(x), first], 1))
        return self.outc(x)


def dice(logits, masks):
    marked = (logits > 0).float()
    return (2 * (marked * masks).sum() / (marked.sum() + masks.sum() + 1e-6)).item()


images, masks = make_scans(520)
train_set = TensorDataset(images[:400], masks[:400])
loader = DataLoader(train_set, batch_size=20, shuffle=True)
x_val, y_val = images[400:], masks[400:]
model = UNet()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
criterion = nn.BCEWithLogitsLoss()

for epoch in range(12):
    model.train()
    losses, scores = [], []
    for batch, target in loader:
        optimizer.zero_grad()
        logits = model(batch)
        loss = criterion(logits, target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        scores.append(dice(logits.detach(), target))
    model.eval()
    with torch.no_grad():
        logits = model(x_val)
        val_loss = criterion(logits, y_val).item()
    print(
        f"epoch {epoch + 1:2d}  train loss {np.mean(losses):.4f}  dice {np.mean(scores):.3f}"
        f"  val loss {val_loss:.4f}  val dice {dice(logits, y_val):.3f}"
    )
