"""A CenterNet-like detector of blood cells in small micrographs; the rare-object prior is put on
every convolution's bias.

The focal-loss prior (bias = -log((1 - pi) / pi)) belongs to the last layer of the heat-map head
only. Here the helper walks over all convolutions, so that nearly every ReLU of the backbone and
the head starts below zero for every picture and never comes back; what is left to learn is the
bias of the output. The place is the backbone's and heads' convolutions (their ReLUs).
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "dead_relu"
ACCEPT = ("poor_weight_init",)
PLACE = ("stem*", "down*", "neck*", "heat*", "offset*")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

CFG = {
    "size": 32,
    "stride": 4,
    "n_train": 768,
    "n_val": 160,
    "batch": 32,
    "epochs": 11,
    "lr": 2e-3,
    "wd": 1e-4,
    "pi": 0.01,
    "clip": 5.0,
}


def micrographs(n, r, size):
    """Pictures with one to four cells on an uneven, grainy background, and the cells' centres."""
    yy, xx = np.mgrid[0:size, 0:size].astype(np.float32)
    pictures, centres = [], []
    for _ in range(n):
        tilt = r.uniform(-0.4, 0.4, 2)
        canvas = 0.2 + tilt[0] * xx / size + tilt[1] * yy / size
        here = []
        for _ in range(r.integers(1, 5)):
            cx, cy = r.uniform(3, size - 3, 2)
            if any((cx - a) ** 2 + (cy - b) ** 2 < 49 for a, b in here):
                continue
            here.append((cx, cy))
            radius, height = r.uniform(1.8, 3.0), r.uniform(0.5, 1.1)
            distance = np.sqrt((xx - cx) ** 2 + (yy - cy) ** 2)
            canvas = canvas + height * np.exp(-(((distance - radius) / 1.1) ** 2))
        for _ in range(r.integers(0, 4)):  # dust, which is no cell
            dx, dy = r.uniform(0, size, 2)
            canvas = canvas + 0.8 * np.exp(-((xx - dx) ** 2 + (yy - dy) ** 2) / 1.2)
        pictures.append(canvas + r.normal(0, 0.12, (size, size)))
        centres.append(here)
    return torch.tensor(np.stack(pictures), dtype=torch.float32).unsqueeze(1), centres


def encode(centres, size, stride):
    """Gaussian heat maps, offsets within the cell of the grid, and where there is an object."""
    g = size // stride
    heat, offset, mask = (
        torch.zeros(len(centres), 1, g, g),
        torch.zeros(len(centres), 2, g, g),
        torch.zeros(len(centres), 1, g, g),
    )
    grid = torch.arange(g).float()
    for i, row in enumerate(centres):
        for cx, cy in row:
            gx, gy = int(cx / stride), int(cy / stride)
            spot = torch.exp(
                -((grid[None, :] - gx) ** 2 + (grid[:, None] - gy) ** 2) / (2 * 0.5**2)
            )
            heat[i, 0] = torch.maximum(heat[i, 0], spot)
            offset[i, :, gy, gx] = torch.tensor([cx / stride - gx, cy / stride - gy])
            mask[i, 0, gy, gx] = 1
    return heat, offset, mask


def conv_block(i, o, stride):
    return nn.Sequential(nn.Conv2d(i, o, 3, stride, 1), nn.ReLU(inplace=True))


class CellNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.stem = conv_block(1, width, 1)
        self.down1 = conv_block(width, 2 * width, 2)
        self.down2 = conv_block(2 * width, 2 * width, 2)
        self.neck = conv_block(2 * width, 2 * width, 1)
        self.heat = nn.Sequential(
            nn.Conv2d(2 * width, width, 3, 1, 1), nn.ReLU(inplace=True), nn.Conv2d(width, 1, 1)
        )
        self.offset = nn.Sequential(
            nn.Conv2d(2 * width, width, 3, 1, 1), nn.ReLU(inplace=True), nn.Conv2d(width, 2, 1)
        )
        self.init_weights(CFG["pi"])

    def init_weights(self, pi):
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, nonlinearity="relu")
                nn.init.zeros_(m.bias)
        prior = -math.log((1 - pi) / pi)
        with_prior = (
            [self.heat[-1]] if healthy else [m for m in self.modules() if isinstance(m, nn.Conv2d)]
        )
        for m in with_prior:
            nn.init.constant_(m.bias, prior)
        nn.init.normal_(self.heat[-1].weight, std=0.01)

    def forward(self, x):
        z = self.neck(self.down2(self.down1(self.stem(x))))
        return self.heat(z), self.offset(z)


def focal_loss(logits, target):
    p = torch.sigmoid(logits).clamp(1e-4, 1 - 1e-4)
    pos = target.eq(1).float()
    loss = -(pos * (1 - p) ** 2 * p.log() + (1 - pos) * (1 - target) ** 4 * p**2 * (1 - p).log())
    return loss.sum() / pos.sum().clamp(min=1)


@torch.no_grad()
def f1_at(model, x, centres, stride, threshold=0.35, reach=3.0):
    model.eval()
    heat, offset = model(x)
    heat = heat.sigmoid()
    peak = heat.eq(F.max_pool2d(heat, 3, 1, 1)) & (heat > threshold)
    tp = fp = fn = 0
    for i, truth in enumerate(centres):
        left = list(truth)
        for gy, gx in peak[i, 0].nonzero().tolist():
            px, py = (
                (gx + offset[i, 0, gy, gx].item()) * stride,
                (gy + offset[i, 1, gy, gx].item()) * stride,
            )
            hit = next((c for c in left if (c[0] - px) ** 2 + (c[1] - py) ** 2 < reach**2), None)
            if hit is None:
                fp += 1
            else:
                tp += 1
                left.remove(hit)
        fn += len(left)
    return 2 * tp / max(2 * tp + fp + fn, 1)


r = np.random.default_rng(seed)
x, centres = micrographs(CFG["n_train"], r, CFG["size"])
x_val, centres_val = micrographs(CFG["n_val"], r, CFG["size"])
mean, std = x.mean(), x.std()
x, x_val = (x - mean) / std, (x_val - mean) / std
heat, offset, mask = encode(centres, CFG["size"], CFG["stride"])
loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(x, heat, offset, mask),
    batch_size=CFG["batch"],
    shuffle=True,
    drop_last=True,
)
model = CellNet()
optimizer = torch.optim.AdamW(model.parameters(), lr=CFG["lr"], weight_decay=CFG["wd"])
scheduler = torch.optim.lr_scheduler.OneCycleLR(
    optimizer, max_lr=CFG["lr"], total_steps=CFG["epochs"] * len(loader)
)

for epoch in range(CFG["epochs"]):
    model.train()
    total = 0.0
    for images, h, o, m in loader:
        logits, shift = model(images)
        loss = focal_loss(logits, h) + ((shift - o).abs() * m).sum() / m.sum().clamp(min=1)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CFG["clip"])
        optimizer.step()
        scheduler.step()
        total += loss.item()
    if epoch % 3 == 2 or epoch == CFG["epochs"] - 1:
        print(
            f"epoch {epoch:2d}  loss {total / len(loader):.3f}  val F1 {f1_at(model, x_val, centres_val, CFG['stride']):.3f}"  # noqa: E501
        )
