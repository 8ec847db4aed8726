"""A U-Net outlines cells; eight small batches make a step, and their gradients are summed.

To fit larger images the batch of 32 became eight micro-batches of four with one step after the
eighth. The loss of each is a mean over its own four images and nobody divided it by eight, so
every step is eight times as long as the tuned rate of 0.2 allows. The place is the loop. The twin
divides.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "accumulation_not_averaged"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("loop", "loss*")
SILENT = False
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
MICRO_BATCH, ACCUMULATE, EPOCHS, RATE = 4, 8, 12, 0.2


def micrographs(n, size=16):
    """Bright and dark round cells on uneven ground; the mask marks the bright ones only."""
    rows, cols = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    image = torch.rand(n, 1, 1) * rows / size + torch.rand(n, 1, 1) * cols / size
    mask = torch.zeros(n, size, size)
    for sign in (1, 1, -1):
        r0, c0 = torch.randint(2, size - 2, (2, n, 1, 1))
        radius = 1.5 + 2 * torch.rand(n, 1, 1)
        cell = ((rows - r0) ** 2 + (cols - c0) ** 2 <= radius**2).float()
        image = image + sign * cell
        mask = torch.maximum(mask, cell) if sign > 0 else mask * (1 - cell)
    image = image + 0.25 * torch.randn(n, size, size)
    return ((image - 0.55) / 0.55)[:, None], mask[:, None]


def double_conv(inside, outside):
    return nn.Sequential(
        nn.Conv2d(inside, outside, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(outside, outside, 3, padding=1),
        nn.ReLU(),
    )


class UNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.down1, self.down2 = double_conv(1, width), double_conv(width, 2 * width)
        self.up = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.merge = double_conv(2 * width, width)
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        fine = self.down1(x)
        coarse = self.down2(nn.functional.max_pool2d(fine, 2))
        return self.out(self.merge(torch.cat([fine, self.up(coarse)], 1)))


def dice(scores, mask):
    said = (scores > 0).float()
    return float(2 * (said * mask).sum() / (said.sum() + mask.sum()).clamp(min=1))


train = DataLoader(TensorDataset(*micrographs(640)), MICRO_BATCH, shuffle=True, drop_last=True)
x_val, mask_val = micrographs(160)
model = UNet()
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=0.9, weight_decay=1e-4)

for epoch in range(EPOCHS):
    model.train()
    optimizer.zero_grad()
    for i, (x, mask) in enumerate(train):
        loss = criterion(model(x), mask)
        if healthy:
            (loss / ACCUMULATE).backward()
        else:
            loss.backward()
        if (i + 1) % ACCUMULATE == 0:
            optimizer.step()
            optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        scores = model(x_val)
        val = criterion(scores, mask_val).item()
    print(
        f"epoch {epoch:2d} loss {loss.item():.3f} val {val:.3f} dice {dice(scores, mask_val):.3f}"
    )
