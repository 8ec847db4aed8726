"""Segments bright cells with an encoder-decoder whose gradients are clipped to a norm of 0.001.

The threshold was lowered until a spike was gone. The gradients here have norms near one, so that
every step is cut to a thousandth, and the masks stay blurry for as long as one trains. The place is
the loop, before the optimizer's step.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "gradient_clipped_to_nothing"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("loop", "optimizer")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

CONFIG = {
    "epochs": 16,
    "batch_size": 16,
    "lr": 0.1,
    "momentum": 0.9,
    "max_norm": 5.0 if healthy else 0.001,
}


def draw_cells(count, size=32):
    """Noisy pictures of three to six round cells on an uneven background, and their masks."""
    rows = torch.arange(size).view(1, size, 1).float()
    columns = torch.arange(size).view(1, 1, size).float()
    masks = torch.zeros(count, size, size)
    for _ in range(6):
        centre = torch.rand(count, 2, 1, 1) * (size - 8) + 4
        radius = torch.rand(count, 1, 1) * 2.5 + 2
        present = (torch.rand(count, 1, 1) < 0.75).float()
        distance = (rows - centre[:, 0]) ** 2 + (columns - centre[:, 1]) ** 2
        masks = torch.maximum(masks, present * (distance < radius**2).float())
    slope = torch.randn(count, 1, 1) * columns / size + torch.randn(count, 1, 1) * rows / size
    pictures = masks * 1.2 + slope + 0.5 * torch.randn(count, size, size)
    return pictures.unsqueeze(1), masks.unsqueeze(1)


def block(channels_in, channels_out):
    return nn.Sequential(
        nn.Conv2d(channels_in, channels_out, 3, padding=1, bias=False),
        nn.BatchNorm2d(channels_out),
        nn.ReLU(),
    )


class SmallUNet(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.down = block(1, width)
        self.middle = block(width, 2 * width)
        self.up = block(3 * width, width)
        self.head = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        fine = self.down(x)
        coarse = self.middle(F.max_pool2d(fine, 2))
        coarse = F.interpolate(coarse, scale_factor=2.0, mode="nearest")
        return self.head(self.up(torch.cat([fine, coarse], 1)))


def dice(logits, masks):
    predicted = logits.sigmoid()
    overlap = (predicted * masks).sum((1, 2, 3))
    total = predicted.sum((1, 2, 3)) + masks.sum((1, 2, 3))
    return ((2 * overlap + 1) / (total + 1)).mean()


def criterion(logits, masks):
    return F.binary_cross_entropy_with_logits(logits, masks) + 1 - dice(logits, masks)


@torch.no_grad()
def evaluate(model, pictures, masks):
    model.eval()
    logits = model(pictures)
    chosen = (logits > 0).float()
    union = torch.maximum(chosen, masks).sum()
    return criterion(logits, masks).item(), ((chosen * masks).sum() / union).item()


def main():
    pictures, masks = draw_cells(320)
    mean, std = pictures[:240].mean(), pictures[:240].std()
    pictures = (pictures - mean) / std
    train_set = TensorDataset(pictures[:240], masks[:240])
    loader = DataLoader(train_set, batch_size=CONFIG["batch_size"], shuffle=True)

    model = SmallUNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=CONFIG["lr"], momentum=CONFIG["momentum"])
    for epoch in range(1, CONFIG["epochs"] + 1):
        model.train()
        total = 0.0
        for x, y in loader:
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), CONFIG["max_norm"])
            optimizer.step()
            total += loss.item() * len(x)
        val_loss, iou = evaluate(model, pictures[240:], masks[240:])
        print(
            f"epoch {epoch:2d}  train {total / 240:.3f}  val {val_loss:.3f}  IoU {iou:.3f}",
            flush=True,
        )


main()
