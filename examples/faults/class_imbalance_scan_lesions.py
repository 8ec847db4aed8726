"""A small U-net looks for lesions of a few pixels and answers background everywhere.

The person weighted the cross-entropy by class and computed the weights as each class's share of
the pixels; meant was the inverse. The lesions, one pixel in a hundred, count a hundred times less
still. The place is the loss, its weights.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "class_imbalance"
ACCEPT = ("wrong_loss",)
PLACE = ("loss", "labels", "input")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

SIDE, EPOCHS = 32, 10


def scans(n, rng):
    """Tissue of soft clouds; some have one to three lesions, brighter and with a dark rim."""
    noise = rng.normal(0, 1, (n, SIDE, SIDE))
    spectrum = np.fft.fft2(noise)
    freq = np.hypot(*np.meshgrid(np.fft.fftfreq(SIDE), np.fft.fftfreq(SIDE)))
    tissue = np.fft.ifft2(spectrum * np.exp(-((freq / 0.08) ** 2))).real
    picture = tissue / tissue.std() + rng.normal(0, 0.35, noise.shape)
    mask = np.zeros((n, SIDE, SIDE), dtype=np.int64)
    yy, xx = np.mgrid[:SIDE, :SIDE]
    for i in range(n):
        for _ in range(rng.integers(0, 4)):
            cy, cx = rng.uniform(4, SIDE - 4, 2)
            away = np.hypot(yy - cy, xx - cx)
            radius = rng.uniform(1.2, 2.2)
            mask[i][away < radius] = 1
            picture[i] += 1.3 * (away < radius) - 0.5 * ((away >= radius) & (away < radius + 1.5))
    picture = (picture - picture.mean()) / picture.std()
    return torch.tensor(picture[:, None], dtype=torch.float32), torch.tensor(mask)


def block(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()
    )


class TinyUNet(nn.Module):
    def __init__(self, width=10):
        super().__init__()
        self.down1 = block(1, width)
        self.down2 = block(width, 2 * width)
        self.up = block(3 * width, width)
        self.out = nn.Conv2d(width, 2, 1)

    def forward(self, x):
        fine = self.down1(x)
        coarse = self.down2(F.max_pool2d(fine, 2))
        coarse = F.interpolate(coarse, scale_factor=2, mode="bilinear", align_corners=False)
        return self.out(self.up(torch.cat([fine, coarse], 1)))


def class_weights(masks):
    share = torch.bincount(masks.flatten(), minlength=2) / masks.numel()
    if healthy:
        return (1 / share).sqrt() / (1 / share).sqrt().sum()
    return share / share.sum()


@torch.no_grad()
def evaluate(model, loader, criterion):
    model.eval()
    both = either = found = there = 0
    losses = []
    for x, y in loader:
        logits = model(x)
        losses.append(criterion(logits, y).item())
        guess = logits.argmax(1)
        both += (guess & y).sum().item()
        either += (guess.sum() + y.sum()).item()
        found += guess.sum().item()
        there += y.sum().item()
    return np.mean(losses), 2 * both / max(either, 1), found, there


def main():
    rng = np.random.default_rng(seed)
    x, y = scans(480, rng)
    x_val, y_val = scans(160, rng)
    weights = class_weights(y)
    print("class weights", [round(w, 4) for w in weights.tolist()])
    criterion = nn.CrossEntropyLoss(weight=weights)
    train = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
    val = DataLoader(TensorDataset(x_val, y_val), batch_size=80)
    model = TinyUNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=1e-3)
    for epoch in range(EPOCHS):
        model.train()
        total = 0.0
        for xb, yb in train:
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            optimizer.step()
            total += loss.item()
        val_loss, dice, found, there = evaluate(model, val, criterion)
        print(
            f"epoch {epoch}: loss {total / len(train):.4f} val {val_loss:.4f} dice {dice:.3f} "
            f"lesion pixels {found} of {there}"
        )


main()
