"""A segmenter of welding defects; a sanity check before the first epoch leaves the network in
evaluation mode.

The trainer looks at two validation batches first, as Lightning does, and validate() calls eval().
train() is called once, in the constructor. So all training runs with the batch norms' first
running statistics (0 and 1), that is, without normalisation, and without dropout. The place is
the loop.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "eval_mode_while_training"
ACCEPT = ()
PLACE = ("loop", "*norm*", "*drop*", "")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


@dataclass
class TrainerConfig:
    steps: int = 320
    batch: int = 20
    lr: float = 0.15
    val_every: int = 80
    sanity_batches: int = 2


def seams(n, size=20):
    """X-rays of welds: a bright seam, grain, and pores, cracks or neither."""
    lin = torch.linspace(-1, 1, size)
    yy, xx = torch.meshgrid(lin, lin, indexing="ij")
    tilt, off = 0.3 * torch.randn(n, 1, 1), 0.2 * torch.randn(n, 1, 1)
    across = yy - tilt * xx - off
    img = (
        torch.exp(-((across / 0.45) ** 2))
        + 0.2 * F.interpolate(torch.randn(n, 1, 7, 7), size=size, mode="bicubic")[:, 0]
    )
    mask = torch.zeros(n, size, size, dtype=torch.long)
    for _ in range(2):
        has = (torch.rand(n, 1, 1) < 0.6).float()
        cx, cy, r = (
            torch.rand(n, 1, 1) * 1.4 - 0.7,
            0.2 * torch.randn(n, 1, 1),
            0.17 + 0.13 * torch.rand(n, 1, 1),
        )
        d = ((xx - cx) ** 2 + (across - cy) ** 2).sqrt()
        img = img - 0.9 * has * torch.sigmoid(20 * (r - d))
        mask[(d < r) & (has > 0)] = 1
    has = (torch.rand(n, 1, 1) < 0.4).float()
    cx, a = torch.rand(n, 1, 1) * 1.2 - 0.6, 1.5 * torch.randn(n, 1, 1)
    d = (xx - cx - 0.2 * torch.sin(a * 2 * yy)).abs()
    crack = (d < 0.09) & (across.abs() < 0.4) & (has > 0)
    img = img - 0.7 * has * torch.exp(-((d / 0.08) ** 2)) * (across.abs() < 0.4)
    mask[crack] = 2
    img = img + 0.1 * torch.randn(n, size, size)
    return ((img - 0.5) / 0.5).unsqueeze(1), mask


class ConvBN(nn.Sequential):
    def __init__(self, a, b):
        super().__init__()
        self.conv = nn.Conv2d(a, b, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(b)
        self.act = nn.ReLU()


class UNet(nn.Module):
    def __init__(self, w=12):
        super().__init__()
        self.a1, self.a2 = ConvBN(1, w), ConvBN(w, w)
        self.b1, self.b2 = ConvBN(w, 2 * w), ConvBN(2 * w, 2 * w)
        self.c1, self.c2 = ConvBN(2 * w, 2 * w), ConvBN(2 * w, 2 * w)
        self.d1, self.d2 = ConvBN(4 * w, w), ConvBN(2 * w, w)
        self.drop = nn.Dropout2d(0.05)
        self.out = nn.Conv2d(w, 3, 1)

    def forward(self, x):
        a = self.a2(self.a1(x))
        b = self.b2(self.b1(F.max_pool2d(a, 2)))
        c = self.c2(self.c1(F.max_pool2d(b, 2)))
        d = self.d1(torch.cat([b, F.interpolate(c, scale_factor=2)], 1))
        d = self.d2(torch.cat([a, F.interpolate(d, scale_factor=2)], 1))
        return self.out(self.drop(d))


def iou(logits, mask):
    pred = logits.argmax(1)
    return [
        (((pred == k) & (mask == k)).sum() / ((pred == k) | (mask == k)).sum().clamp(min=1)).item()
        for k in (1, 2)
    ]


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        self.model = UNet().train()
        self.train_data, self.val_data = seams(800), seams(200)
        self.opt = torch.optim.SGD(
            self.model.parameters(), lr=cfg.lr, momentum=0.9, weight_decay=1e-4
        )
        self.sched = torch.optim.lr_scheduler.OneCycleLR(self.opt, cfg.lr, total_steps=cfg.steps)

    @torch.no_grad()
    def validate(self, limit=None):
        self.model.eval()
        outs = [self.model(x) for x in self.val_data[0].split(50)[:limit]]
        out = torch.cat(outs)
        mask = self.val_data[1][: len(out)]
        return F.cross_entropy(out, mask).item(), iou(out, mask)

    def training_step(self):
        if healthy:
            self.model.train()
        rows = torch.randint(0, len(self.train_data[0]), (self.cfg.batch,))
        out = self.model(self.train_data[0][rows])
        mask = self.train_data[1][rows]
        p = out.softmax(1)[:, 1:]
        hot = F.one_hot(mask, 3).movedim(-1, 1)[:, 1:].float()
        dice = 1 - (2 * (p * hot).sum((0, 2, 3)) + 1) / ((p + hot).sum((0, 2, 3)) + 1)
        return F.cross_entropy(out, mask) + dice.mean()

    def fit(self):
        print("sanity check:", self.validate(self.cfg.sanity_batches))
        for step in range(1, self.cfg.steps + 1):
            loss = self.training_step()
            self.opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.opt.step()
            self.sched.step()
            if step % self.cfg.val_every == 0:
                val, (pore, crack) = self.validate()
                print(
                    f"step {step} loss {loss.item():.4f} val {val:.4f} IoU pore {pore:.3f} crack {crack:.3f}"  # noqa: E501
                )


Trainer(TrainerConfig()).fit()
