"""A super-resolution network for planetary images in half precision; a fixed loss scale overflows
in every step.

The user keeps fp32 masters, computes in fp16, and multiplies the loss with 2**16 for ever. Steps
with an infinite gradient are skipped, as in the examples, but nobody lowers the scale, so that no
step is ever taken. The place is the loss scale in the loop (optimizer).
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "loss_scale_overflow"
ACCEPT = ()
PLACE = ("loop", "optimizer", "loss")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

LOW, UP = 10, 2


def craters(n, gen):
    """Height maps with craters, lit from the side; the low-resolution view of the same."""
    size = LOW * UP
    lin = torch.linspace(-1, 1, size)
    yy, xx = torch.meshgrid(lin, lin, indexing="ij")
    height = (
        F.interpolate(torch.randn(n, 1, 5, 5, generator=gen), size=size, mode="bicubic")[:, 0]
        * 0.12
    )
    for _ in range(6):
        c = torch.rand(n, 2, 1, 1, generator=gen) * 2 - 1
        r = 0.12 + 0.3 * torch.rand(n, 1, 1, generator=gen)
        d = ((xx - c[:, 0]) ** 2 + (yy - c[:, 1]) ** 2).sqrt() / r
        height = (
            height
            - 0.6 * r * torch.exp(-((d / 0.8) ** 4))
            + 0.25 * r * torch.exp(-(((d - 1) / 0.2) ** 2))
        )
    light = torch.diff(height, dim=2, prepend=height[..., :1]) * 9
    sharp = torch.tanh(light).unsqueeze(1)
    return F.avg_pool2d(sharp, UP) + 0.03 * torch.randn(n, 1, LOW, LOW, generator=gen), sharp


class SuperRes(nn.Module):
    def __init__(self, w=24):
        super().__init__()
        self.head = nn.Conv2d(1, w, 5, padding=2)
        self.body = nn.ModuleList(nn.Conv2d(w, w, 3, padding=1) for _ in range(3))
        self.tail = nn.Conv2d(w, UP * UP, 3, padding=1)
        nn.init.normal_(self.tail.weight, std=0.01)

    def forward(self, x):
        h = F.relu(self.head(x))
        for conv in self.body:
            h = h + 0.5 * F.relu(conv(h))
        base = F.interpolate(x, scale_factor=UP, mode="bilinear", align_corners=False)
        return base + F.pixel_shuffle(self.tail(h), UP)


class MixedPrecision:
    """fp32 masters beside an fp16 model."""

    def __init__(self, model, lr, scale=2.0**16):
        self.half = model
        self.masters = [p.detach().clone().float().requires_grad_() for p in model.parameters()]
        self.opt = torch.optim.Adam(self.masters, lr=lr)
        self.scale, self.skipped, self.good = scale, 0, 0

    def step(self, loss):
        self.half.zero_grad(set_to_none=True)
        (loss * self.scale).backward()
        grads = [p.grad.float() / self.scale for p in self.half.parameters()]
        if not all(torch.isfinite(g).all() for g in grads):
            self.skipped += 1
            if healthy:
                self.scale /= 2
            return False
        for m, g in zip(self.masters, grads, strict=False):
            m.grad = g
        torch.nn.utils.clip_grad_norm_(self.masters, 10.0)
        self.opt.step()
        with torch.no_grad():
            for p, m in zip(self.half.parameters(), self.masters, strict=False):
                p.copy_(m)
        return True


gen = torch.Generator().manual_seed(seed)
x, y = craters(1500, gen)
xv, yv = craters(200, gen)
model = SuperRes().half()
amp = MixedPrecision(model, lr=1e-3)


def psnr():
    with torch.no_grad():
        err = (model(xv.half()).float() - yv).pow(2).mean()
    return (10 * torch.log10(4 / err)).item()


print(
    f"bilinear {(10 * torch.log10(4 / (F.interpolate(xv, scale_factor=UP, mode='bilinear') - yv).pow(2).mean())).item():.2f} dB"  # noqa: E501
)
STEPS = 240
for step in range(1, STEPS + 1):
    rows = torch.randint(0, len(x), (16,), generator=gen)
    out = model(x[rows].half())
    loss = (out.float() - y[rows]).abs().sum((1, 2, 3)).mean()
    amp.step(loss)
    if step % 60 == 0:
        print(
            f"step {step} loss {loss.item():.3f} val PSNR {psnr():.2f} dB (skipped {amp.skipped})"
        )
