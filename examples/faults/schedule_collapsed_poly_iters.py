"""Road-crack segmentation by a small U-Net with the poly schedule; its horizon is one epoch's
iterations.

`max_iters = len(loader)` in place of `epochs * len(loader)`: the rate has come down to zero when
the first epoch ends, and eight more go on with gradients but without a rate. The clamp that keeps
the power real hides the matter. The place is the optimizer's schedule.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "schedule_collapsed"
ACCEPT = ()
PLACE = ("optimizer", "loop")
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)

cfg = {
    "data": {"size": 32, "train": 416, "val": 120},
    "model": {"width": 10},
    "optim": {"lr": 0.08, "momentum": 0.9, "weight_decay": 1e-4, "power": 0.9},
    "train": {"epochs": 9, "batch_size": 16, "log_every": 100},
}


def tarmac(n, size, generator):
    """Grainy tarmac with cracks (random walks), shadows and painted lines, which are no cracks."""
    images = 0.5 + 0.12 * torch.randn(n, 1, size, size, generator=generator)
    images = F.avg_pool2d(images, 3, 1, 1) + 0.08 * torch.randn(
        n, 1, size, size, generator=generator
    )
    masks = torch.zeros(n, 1, size, size)
    for i in range(n):
        for _ in range(int(torch.randint(1, 4, (1,), generator=generator))):
            p = torch.rand(2, generator=generator) * size
            heading = torch.rand(1, generator=generator) * 6.283
            for _ in range(int(torch.randint(18, 40, (1,), generator=generator))):
                heading = heading + 0.35 * torch.randn(1, generator=generator)
                p = (p + torch.cat([heading.cos(), heading.sin()])).clamp(0, size - 1)
                masks[i, 0, int(p[0]), int(p[1])] = 1
        if torch.rand(1, generator=generator) < 0.4:
            column = int(torch.randint(0, size - 2, (1,), generator=generator))
            images[i, 0, :, column : column + 2] += 0.35
        if torch.rand(1, generator=generator) < 0.5:
            images[i, 0, int(torch.randint(0, size, (1,), generator=generator)) :] -= 0.12
    depth = 0.18 + 0.12 * torch.rand(n, 1, 1, 1, generator=generator)
    return (images - masks * depth - 0.48) / 0.15, masks


class DoubleConv(nn.Sequential):
    def __init__(self, i, o):
        super().__init__(
            nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True),
            nn.Conv2d(o, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True),
        )  # fmt: skip


class UNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inc, self.down1, self.down2 = (
            DoubleConv(1, width),
            DoubleConv(width, 2 * width),
            DoubleConv(2 * width, 2 * width),
        )
        self.up1, self.up2 = DoubleConv(4 * width, width), DoubleConv(2 * width, width)
        self.outc = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        a = self.inc(x)
        b = self.down1(F.max_pool2d(a, 2))
        c = self.down2(F.max_pool2d(b, 2))
        d = self.up1(torch.cat([b, F.interpolate(c, scale_factor=2.0, mode="nearest")], 1))
        return self.outc(
            self.up2(torch.cat([a, F.interpolate(d, scale_factor=2.0, mode="nearest")], 1))
        )


def criterion(logits, mask):
    p = logits.sigmoid()
    dice = 1 - (2 * (p * mask).sum((1, 2, 3)) + 1) / (p.sum((1, 2, 3)) + mask.sum((1, 2, 3)) + 1)
    return F.binary_cross_entropy_with_logits(logits, mask) + dice.mean()


class PolyLR(torch.optim.lr_scheduler.LambdaLR):
    def __init__(self, optimizer, max_iters, power):
        super().__init__(optimizer, lambda it: max(0.0, 1 - it / max_iters) ** power)


@torch.no_grad()
def iou(model, loader):
    model.eval()
    inter = union = 0
    for x, m in loader:
        p = model(x) > 0
        inter += (p & m.bool()).sum().item()
        union += (p | m.bool()).sum().item()
    return inter / max(union, 1)


g = torch.Generator().manual_seed(seed)
train_set = TensorDataset(*tarmac(cfg["data"]["train"], cfg["data"]["size"], g))
val_set = TensorDataset(*tarmac(cfg["data"]["val"], cfg["data"]["size"], g))
loader = DataLoader(train_set, cfg["train"]["batch_size"], shuffle=True, drop_last=True)
val_loader = DataLoader(val_set, 60)
model, best = UNet(cfg["model"]["width"]), 0.0
o = cfg["optim"]
optimizer = torch.optim.SGD(
    model.parameters(), o["lr"], o["momentum"], weight_decay=o["weight_decay"]
)
max_iters = cfg["train"]["epochs"] * len(loader) if healthy else len(loader)
scheduler = PolyLR(optimizer, max_iters, o["power"])
for epoch in range(cfg["train"]["epochs"]):
    model.train()
    total = 0.0
    for x, m in loader:
        flip = torch.rand(()) < 0.5
        x, m = (x.flip(3), m.flip(3)) if flip else (x, m)  # noqa: PLW2901
        loss = criterion(model(x), m)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item()
    score = iou(model, val_loader)
    best = max(best, score)
    if epoch % 2 == 0:
        print(
            f"epoch {epoch + 1}: loss {total / len(loader):.4f}, val IoU {score:.4f}, best {best:.4f}"  # noqa: E501
        )
