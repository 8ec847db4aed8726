"""A segmentation of blobs in noisy images, ten steps by cross-entropy and then by Dice; the Dice
is that of the thresholded mask.

The mask is made by `> 0.5`, which has no gradient; to get rid of the error message of backward(),
requires_grad_() was put on it. From then on backward runs and reaches no parameter, and every
step of the optimizer does nothing. The place is the loss.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "detached_loss"
ACCEPT = ("step_without_gradient",)
PLACE = ("loss", "loop")
SILENT = False
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

CONFIG = {
    "size": 24,
    "train": 640,
    "val": 200,
    "batch": 16,
    "epochs": 10,
    "bce_steps": 10,
    "lr": 5e-3,
}


def cells(n, size, seed):
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[:size, :size]
    images = np.zeros((n, 1, size, size), dtype=np.float32)
    masks = np.zeros_like(images)
    for k in range(n):
        shade = rng.normal(0, 1, 2) @ np.stack([yy.ravel(), xx.ravel()]) / size
        img = 0.5 * shade.reshape(size, size)
        for _ in range(rng.integers(1, 4)):
            cy, cx = rng.uniform(4, size - 4, 2)
            a, b = rng.uniform(2, 5, 2)
            inside = ((yy - cy) / a) ** 2 + ((xx - cx) / b) ** 2 < 1
            masks[k, 0][inside] = 1
            img = img + inside * rng.uniform(0.7, 1.3)
        images[k, 0] = img + rng.normal(0, 0.6, img.shape)
    return torch.from_numpy(images), torch.from_numpy(masks)


def block(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU())


class TinyUNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1 = block(1, 8)
        self.down2 = block(8, 16)
        self.mid = block(16, 16)
        self.up = block(24, 8)
        self.head = nn.Conv2d(8, 1, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.mid(self.down2(F.max_pool2d(a, 2)))
        b = F.interpolate(b, scale_factor=2, mode="nearest")
        return self.head(self.up(torch.cat([a, b], 1)))


def dice(p, mask):
    inter = (p * mask).sum((1, 2, 3))
    return ((2 * inter + 1) / (p.sum((1, 2, 3)) + mask.sum((1, 2, 3)) + 1)).mean()


def criterion(logits, mask, step):
    if step < CONFIG["bce_steps"]:
        return F.binary_cross_entropy_with_logits(logits, mask)
    prob = logits.sigmoid()
    pred = prob if healthy else (prob > 0.5).float().requires_grad_()
    return 1 - dice(pred, mask)


@torch.no_grad()
def validate(model, loader):
    model.eval()
    return float(np.mean([dice((model(x) > 0).float(), m).item() for x, m in loader]))


train = DataLoader(
    TensorDataset(*cells(CONFIG["train"], CONFIG["size"], seed + 1)), CONFIG["batch"], shuffle=True
)
val = DataLoader(TensorDataset(*cells(CONFIG["val"], CONFIG["size"], seed + 2000)), 50)
net = TinyUNet()
optim = torch.optim.AdamW(net.parameters(), lr=CONFIG["lr"], weight_decay=1e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(optim, CONFIG["epochs"], eta_min=2e-4)
step = 0
for epoch in range(CONFIG["epochs"]):
    net.train()
    losses = []
    for x, m in train:
        optim.zero_grad()
        loss = criterion(net(x), m, step)
        loss.backward()
        step += 1
        optim.step()
        losses.append(loss.item())
    sched.step()
    print(f"epoch {epoch}: loss {np.mean(losses):.4f}, val dice {validate(net, val):.4f}")
