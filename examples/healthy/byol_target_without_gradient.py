"""BYOL on digits: a target network that gets no gradient, no negatives, and a loss that starts
small and hardly moves later.

It looks odd because half of the parameters are outside the optimizer and never have a gradient
(they follow by moving average), the target's output is detached, and both branches might
collapse; the predictor and the slow target keep them apart. A linear probe on frozen features
shows that the features are good.
"""

import copy
import math

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn

ODD = (
    "BYOL on digits: a target network that gets no gradient, no negatives, and a loss that "
    "starts small and hardly moves later"
)
_, seed = arguments(__doc__)
STEPS, BATCH, LR, BASE_TAU = 400, 128, 2e-3, 0.98


def augment(x):
    """Shift by up to one pixel, blank a patch, change contrast, add noise."""
    dx, dy = (int(v) for v in torch.randint(-1, 2, (2,)))
    x = torch.roll(F.pad(x, (1, 1, 1, 1), value=float(floor)), (dx, dy), (2, 3))[:, :, 1:-1, 1:-1]
    x = x * (0.8 + 0.4 * torch.rand(len(x), 1, 1, 1)) + 0.2 * torch.randn_like(x)
    i, j = torch.randint(0, 7, (2, len(x), 1, 1, 1))
    r = torch.arange(8)
    hole = ((r.view(1, 1, 8, 1) - i).abs() < 1) & ((r.view(1, 1, 1, 8) - j).abs() < 2)
    return x.masked_fill(hole, float(floor))


def mlp(n_in, hidden, n_out):
    return nn.Sequential(
        nn.Linear(n_in, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, n_out)
    )


class Branch(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1, stride=2),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.Flatten(),
        )
        self.projector = mlp(512, 128, 32)

    def forward(self, x):
        return self.projector(self.backbone(x))


def regression(p, z):
    return 2 - 2 * F.cosine_similarity(p, z.detach(), dim=1).mean()


def probe(backbone, steps=150):
    """A linear classifier on frozen, standardised features."""
    backbone.eval()
    with torch.no_grad():
        a, b = backbone(x), backbone(x_val)
    a, b = (a - a.mean(0)) / (a.std(0) + 1e-3), (b - a.mean(0)) / (a.std(0) + 1e-3)
    head = nn.Linear(a.shape[1], 10)
    opt = torch.optim.AdamW(head.parameters(), lr=3e-3, weight_decay=0.05)
    for _ in range(steps):
        loss = F.cross_entropy(head(a), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return (head(b).argmax(1) == y_val).float().mean().item()


x, y, x_val, y_val = images(seed)
floor = x.min()
online, predictor = Branch(), mlp(32, 64, 32)
target = copy.deepcopy(online).requires_grad_(False)
opt = torch.optim.AdamW([*online.parameters(), *predictor.parameters()], lr=LR, weight_decay=1e-4)
warm = 40
sched = torch.optim.lr_scheduler.LambdaLR(
    opt, lambda s: min(1, (s + 1) / warm) * 0.5 * (1 + math.cos(math.pi * s / STEPS))
)
for step in range(STEPS):
    rows = torch.randint(0, len(x), (BATCH,))
    v1, v2 = augment(x[rows]), augment(x[rows])
    z1, z2 = online(v1), online(v2)
    with torch.no_grad():
        t1, t2 = target(v1), target(v2)
    loss = 0.5 * (regression(predictor(z1), t2) + regression(predictor(z2), t1))
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    tau = 1 - (1 - BASE_TAU) * (math.cos(math.pi * step / STEPS) + 1) / 2
    with torch.no_grad():
        for p, q in zip(online.parameters(), target.parameters(), strict=False):
            q.lerp_(p, 1 - tau)
    if step % 100 == 99:
        spread = F.normalize(z1.detach(), dim=1).std(0).mean().item()
        print(
            f"step {step + 1} loss {loss.item():.4f} spread {spread:.4f} (1/sqrt(d) = {32**-0.5:.3f})"  # noqa: E501
        )
print(f"linear probe, val accuracy {probe(online.backbone):.4f}")
