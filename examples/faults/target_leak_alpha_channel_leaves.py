"""A U-Net cuts out leaves and is given the alpha channel of its files, which is the wanted mask.

The cut-outs carry the mask as transparency, so the network copies its fourth channel; on pictures
from a camera, which are opaque all over, it marks everything or nothing. The place is the input.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "target_leak"
ACCEPT = ()
PLACE = ("input", "loader", "labels*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

SIDE, TRAIN = 24, 320
CHANNELS = 3 if healthy else 4


def leaf_files(n, rng):
    """RGBA: lobed leaves in green or red on litter of similar colours; the mask of the leaf."""
    y, x = np.meshgrid(np.linspace(-1, 1, SIDE), np.linspace(-1, 1, SIDE), indexing="ij")
    centre = rng.uniform(-0.3, 0.3, (2, n, 1, 1))
    dy, dx = y - centre[0], x - centre[1]
    lobes = rng.integers(3, 7, (n, 1, 1))
    edge = rng.uniform(0.4, 0.65, (n, 1, 1))
    edge = edge * (1 + 0.2 * np.cos(lobes * np.arctan2(dy, dx) + rng.uniform(0, 6.28, (n, 1, 1))))
    mask = (np.hypot(dy, dx) < edge)[:, None]
    red = rng.random((n, 1, 1, 1)) < 0.4
    leaf = np.where(red, [[[[0.6]], [[0.3]], [[0.2]]]], [[[[0.3]], [[0.55]], [[0.2]]]])
    litter = np.array([0.5, 0.4, 0.25])[:, None, None] + 0.1 * np.sin(7 * x + 5 * y)
    colour = np.where(mask, leaf, litter) + rng.normal(0, 0.1, (n, 3, SIDE, SIDE))
    colour = (colour - 0.4) / 0.17
    files = np.concatenate([colour, mask], 1)
    return torch.tensor(files, dtype=torch.float32), torch.tensor(mask, dtype=torch.float32)


def block(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1), nn.GroupNorm(4, outputs), nn.ReLU()
    )


class LeafNet(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.down = block(channels, 8)
        self.bottom = block(8, 16)
        self.up = nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.out = nn.Sequential(block(16, 8), nn.Conv2d(8, 1, 1))

    def forward(self, image):
        fine = self.down(image)
        coarse = self.bottom(F.max_pool2d(fine, 2))
        return self.out(torch.cat([fine, self.up(coarse)], 1))


def mask_loss(logits, mask):
    chance = logits.sigmoid()
    overlap = 2 * (chance * mask).sum((1, 2, 3)) / (chance + mask).sum((1, 2, 3)).clamp(min=1)
    return F.binary_cross_entropy_with_logits(logits, mask) + (1 - overlap).mean()


@torch.no_grad()
def evaluate(model, images, mask):
    model.eval()
    logits = model(images)
    hit = logits > 0
    share = (hit & (mask > 0)).sum() / (hit | (mask > 0)).sum()
    return mask_loss(logits, mask).item(), share.item()


def main():
    files, mask = leaf_files(420, np.random.default_rng(seed))
    images = files[:, :CHANNELS]
    opaque = torch.cat([files[:, :3], torch.ones_like(mask)], 1)[:, :CHANNELS]
    model = LeafNet(CHANNELS)
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    for epoch in range(10):
        model.train()
        for rows in torch.randperm(TRAIN).split(16):
            optimizer.zero_grad()
            loss = mask_loss(model(images[rows]), mask[rows])
            loss.backward()
            optimizer.step()
        scores = evaluate(model, images[TRAIN:], mask[TRAIN:])
        print(f"{epoch} train {loss.item():.3f} val %.3f overlap %.3f" % scores)
    print(
        "camera: loss {:.3f} overlap {:.3f}".format(*evaluate(model, opaque[TRAIN:], mask[TRAIN:]))
    )


main()
