"""A segmentation net with an encoder pre-trained in the same script is fine-tuned, but its fresh
decoder is frozen as well.

To keep the pre-trained encoder the whole model is frozen and only the last 1x1 convolution
switched on again; the decoder that nobody has ever trained stays at its random start. The place
is the up-sampling part: up2, up1, fuse.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "frozen_parameters"
ACCEPT = ()
PLACE = ("up1*", "up2*", "fuse*", "*decoder*")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

# %% synthetic "cells": blobs on a textured background ------------------------------------------------  # noqa: E501
N_TRAIN, N_VAL, SIZE = 480, 120, 32
g = torch.Generator().manual_seed(seed + 11)


def make_cells(n):
    yy, xx = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    img, mask = torch.zeros(n, SIZE, SIZE), torch.zeros(n, SIZE, SIZE)
    for i in range(n):
        tilt = torch.randn(2, generator=g)
        img[i] = 0.02 * (tilt[0] * (xx - 16) + tilt[1] * (yy - 16))
        for kind in torch.randint(0, 3, (5,), generator=g).tolist():
            cx, cy = (torch.rand(2, generator=g) * SIZE).tolist()
            r = 3 + 3 * torch.rand(1, generator=g).item()
            d = ((xx - cx) ** 2 + (yy - cy) ** 2).float().sqrt()
            if kind == 2:  # debris: rings, not to be segmented
                img[i] += torch.exp(-((d - r) ** 2))
            else:
                img[i] += torch.sigmoid(2 * (r - d))
                mask[i] = torch.maximum(mask[i], (d < r).float())
    img += 0.2 * torch.randn(img.shape, generator=g)
    return img[:, None], mask[:, None]


x, m = make_cells(N_TRAIN)
xv, mv = make_cells(N_VAL)
mu, sd = x.mean(), x.std()
x, xv = (x - mu) / sd, (xv - mu) / sd


# %% model ------------------------------------------------------------------------------------------  # noqa: E501
def block(i, o, stride=1):
    return nn.Sequential(nn.Conv2d(i, o, 3, stride, 1), nn.GroupNorm(4, o), nn.ReLU())


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.s1, self.s2, self.s3 = block(1, 8), block(8, 16, 2), block(16, 32, 2)

    def forward(self, x):
        a = self.s1(x)
        b = self.s2(a)
        return a, b, self.s3(b)


class UNet(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder
        self.up2 = nn.ConvTranspose2d(32, 8, 2, 2)
        self.up1 = nn.ConvTranspose2d(24, 8, 2, 2)
        self.fuse = block(16, 8)
        self.classifier = nn.Conv2d(8, 1, 1)

    def forward(self, x):
        a, b, c = self.encoder(x)
        y = torch.cat([F.relu(self.up2(c)), b], 1)
        y = torch.cat([F.relu(self.up1(y)), a], 1)
        return self.classifier(self.fuse(y))


# %% stage 1: self-supervised pre-training of the encoder: restore the image from a noisy, masked one ------------  # noqa: E501
encoder = Encoder()
restore = nn.Sequential(
    nn.ConvTranspose2d(32, 16, 2, 2), nn.ReLU(), nn.ConvTranspose2d(16, 1, 2, 2)
)
opt = torch.optim.Adam([*encoder.parameters(), *restore.parameters()], lr=2e-3)
for step in range(120):
    rows = torch.randint(0, N_TRAIN, (32,))
    clean = x[rows]
    hole = F.interpolate((torch.rand(32, 1, 8, 8) < 0.25).float(), scale_factor=4)
    out = restore(encoder(clean * (1 - hole) + 0.2 * torch.randn_like(clean))[-1])
    loss = F.mse_loss(out, clean)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 40 == 0:
        print(f"pretrain {step:4d} mse {loss.item():.3f}")

# %% stage 2: fine-tune for segmentation --------------------------------------------------------------------  # noqa: E501
model = UNet(encoder)
frozen = model.encoder if healthy else model
for p in frozen.parameters():
    p.requires_grad = False
for p in model.classifier.parameters():
    p.requires_grad = True

trainable = [p for p in model.parameters() if p.requires_grad]
opt = torch.optim.AdamW(trainable, lr=3e-3, weight_decay=1e-4)
EPOCHS, BS = 14, 24
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, EPOCHS * (N_TRAIN // BS))


def dice_loss(logits, target):
    p = logits.sigmoid()
    return 1 - (2 * (p * target).sum((1, 2, 3)) + 1) / (
        p.sum((1, 2, 3)) + target.sum((1, 2, 3)) + 1
    )


@torch.no_grad()
def evaluate():
    model.eval()
    logits = model(xv)
    pred = logits > 0
    inter = (pred & (mv > 0)).sum().item()
    union = (pred | (mv > 0)).sum().item()
    return F.binary_cross_entropy_with_logits(logits, mv).item(), inter / max(union, 1)


for epoch in range(EPOCHS):
    model.train()
    tot, order = 0.0, torch.randperm(N_TRAIN)
    for rows in order.split(BS):
        img, mask = x[rows], m[rows]
        if torch.rand(()) < 0.5:
            img, mask = img.flip(-1), mask.flip(-1)
        logits = model(img)
        loss = (
            F.binary_cross_entropy_with_logits(logits, mask) + 0.5 * dice_loss(logits, mask).mean()
        )
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        tot += loss.item()
    bce, iou = evaluate()
    print(f"epoch {epoch:2d} train {tot / (N_TRAIN / BS):.3f} val_bce {bce:.3f} val_iou {iou:.3f}")
