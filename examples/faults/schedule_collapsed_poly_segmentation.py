"""Outlines of cells; a polynomial decay counts batches but is told the number of epochs.

The poly schedule of a segmentation paper is called after each batch, with max_epochs as its end.
The learning rate is zero before the first epoch is over and the net, a small encoder-decoder, stays
what it was then. The place is the learning rate (the scheduler of the optimizer).
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "schedule_collapsed"
ACCEPT = ("learning_rate_too_low", "optimizer_never_steps")
PLACE = ("learning_rate", "optimizer", "loop")
SILENT = False
EXACT = True
EARLY = False

SIDE = 20


def cells(n):
    """Blurry discs on an uneven ground with noise; the mask is where the discs are."""
    row = torch.arange(SIDE).view(1, SIDE, 1).float()
    col = torch.arange(SIDE).view(1, 1, SIDE).float()
    image = 0.05 * (torch.randn(n, 1, 1) * row + torch.randn(n, 1, 1) * col)
    mask = torch.zeros(n, SIDE, SIDE)
    for _ in range(3):
        y, x = SIDE * torch.rand(2, n, 1, 1)
        radius = 2.5 + 2.5 * torch.rand(n, 1, 1)
        distance = ((row - y) ** 2 + (col - x) ** 2).sqrt()
        image = image + 1.3 * torch.sigmoid(2 * (radius - distance))
        mask = torch.maximum(mask, (distance < radius).float())
    image = image + 0.6 * torch.randn(n, SIDE, SIDE)
    return ((image - image.mean()) / image.std()).unsqueeze(1), mask.unsqueeze(1)


class Double(nn.Sequential):
    def __init__(self, n_in, n_out):
        super().__init__(
            nn.Conv2d(n_in, n_out, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(n_out, n_out, 3, padding=1),
            nn.ReLU(),
        )


class SmallUNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1 = Double(1, 8)
        self.down2 = Double(8, 16)
        self.up = nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.fuse = Double(16, 8)
        self.mask = nn.Conv2d(8, 1, 1)

    def forward(self, image):
        fine = self.down1(image)
        coarse = self.down2(F.max_pool2d(fine, 2))
        return self.mask(self.fuse(torch.cat([fine, self.up(coarse)], dim=1)))


def poly(last, power=0.9):
    return lambda step: max(0.0, 1 - step / last) ** power


def dice(logits, mask):
    guess = (logits > 0).float()
    return (2 * (guess * mask).sum() / (guess.sum() + mask.sum() + 1e-6)).item()


def main():
    healthy, _ = arguments(__doc__)
    image, mask = cells(420)
    train_loader = DataLoader(TensorDataset(image[:320], mask[:320]), 8, shuffle=True)
    val_image, val_mask = image[320:], mask[320:]

    max_epochs = 12
    model = SmallUNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    end = max_epochs * len(train_loader) if healthy else max_epochs
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, poly(end))

    for epoch in range(max_epochs):
        model.train()
        total = 0.0
        for images, masks in train_loader:
            loss = F.binary_cross_entropy_with_logits(model(images), masks)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            logits = model(val_image)
            val_loss = F.binary_cross_entropy_with_logits(logits, val_mask).item()
        print(
            f"epoch {epoch + 1:2d}: loss {total / len(train_loader):.4f}, "
            f"val loss {val_loss:.4f}, val dice {dice(logits, val_mask):.3f}"
        )


if __name__ == "__main__":
    main()
