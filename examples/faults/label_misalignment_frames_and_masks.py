"""Road segmentation whose frames and masks were listed apart and come in different orders.

The frames are named frame_7.png, the masks 0007_L.png; each folder is listed, both lists are sorted
by name and zipped. frame_10 comes before frame_2, 0002_L before 0010_L, and most frames are trained
with the mask of another one: the net paints the mean of all masks. The place is the loader. The
twin sorts the frames by their numbers.
"""

import re

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "label_misalignment"
ACCEPT = ("samples_mixed", "label_noise")
PLACE = ("labels", "loader", "input")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

SIZE = 24
FRAMES = 360


def draw(rng):
    """A street that bends between verges, a parked van, shadows; and the mask of the street."""
    rows = np.arange(SIZE) / SIZE
    centre = rng.uniform(5, 19) + rng.uniform(-12, 12) * (rows - 0.5) + rng.uniform(-6, 6) * rows**2
    half = rng.uniform(2, 3.5) + 3 * rows
    columns = np.arange(SIZE)
    street = np.abs(columns[None, :] - centre[:, None]) < half[:, None]
    image = np.where(street, 0.40, rng.uniform(0.55, 0.75))[None].repeat(3, 0)
    image[1] += np.where(street, 0.0, 0.12)
    image[2] -= np.where(street, 0.0, 0.20)
    top, left = rng.integers(0, SIZE - 6, 2)
    image[:, top : top + 5, left : left + 4] = rng.uniform(0.1, 0.9, (3, 1, 1))
    image *= rng.uniform(0.7, 1.2)
    return image + rng.normal(0, 0.06, image.shape), street.astype(np.float32)


def camera_folders(rng):
    """What the disk would hold: file name -> picture, for the frames and for the masks."""
    frames, masks = {}, {}
    for number in range(FRAMES):
        frames[f"frame_{number}.png"], masks[f"{number:04d}_L.png"] = draw(rng)
    return frames, masks


class RoadDataset(Dataset):
    def __init__(self, frames, masks, keep):
        frame_names, mask_names = sorted(frames), sorted(masks)
        if healthy:
            frame_names.sort(key=lambda name: int(re.search(r"\d+", name).group()))
        pairs = list(zip(frame_names, mask_names, strict=True))
        self.items = [(frames[f], masks[m]) for f, m in (pairs[i] for i in keep)]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        frame, mask = self.items[i]
        frame = (torch.as_tensor(frame, dtype=torch.float32) - 0.5) / 0.2
        return frame, torch.as_tensor(mask).unsqueeze(0)


def block(n_in, n_out):
    return nn.Sequential(
        nn.Conv2d(n_in, n_out, 3, padding=1, bias=False), nn.BatchNorm2d(n_out), nn.ReLU()
    )


class TinyUNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1 = block(3, 12)
        self.down2 = block(12, 24)
        self.bottom = block(24, 24)
        self.up1 = block(48, 12)
        self.up2 = block(24, 12)
        self.last = nn.Conv2d(12, 1, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        c = self.bottom(F.max_pool2d(b, 2))
        y = self.up1(torch.cat([F.interpolate(c, scale_factor=2), b], 1))
        y = self.up2(torch.cat([F.interpolate(y, scale_factor=2), a], 1))
        return self.last(y)


def dice(logits, masks):
    guess = (logits > 0).float()
    shared = (guess * masks).sum((1, 2, 3))
    return (2 * shared / (guess.sum((1, 2, 3)) + masks.sum((1, 2, 3)) + 1e-6)).mean().item()


def main():
    rng = np.random.default_rng(10 + seed)
    frames, masks = camera_folders(rng)
    numbers = rng.permutation(FRAMES)
    train = DataLoader(RoadDataset(frames, masks, numbers[:288]), batch_size=16, shuffle=True)
    valid = DataLoader(RoadDataset(frames, masks, numbers[288:]), batch_size=36)
    net = TinyUNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    epochs = 10
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)

    for epoch in range(epochs):
        net.train()
        losses = []
        for images, targets in train:
            logits = net(images)
            loss = F.binary_cross_entropy_with_logits(logits, targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        scheduler.step()
        net.eval()
        with torch.no_grad():
            results = [(net(images), targets) for images, targets in valid]
        valid_dice = np.mean([dice(*pair) for pair in results])
        valid_loss = np.mean([F.binary_cross_entropy_with_logits(*pair).item() for pair in results])
        print(
            f"epoch {epoch + 1:2d}: train loss {np.mean(losses):.4f}, "
            f"valid loss {valid_loss:.4f}, valid dice {valid_dice:.3f}"
        )


if __name__ == "__main__":
    main()
