"""A small convolutional student is distilled from a teacher trained in the same script; a feature
gap is logged with its graph at every step.

The meter keeps the gap tensors for a plot at the end. They are not part of the loss, so that no
backward frees what their graph holds (differences of feature maps, about a megabyte a step), and
the memory grows until the end. The place is the loop (the meter).
"""

import os
from collections import defaultdict

import torch
import torch.nn.functional as F
from data import arguments
from sklearn.datasets import load_digits
from torch import nn

KIND = "memory_leak"
ACCEPT = ()
PLACE = ("loop", "loss")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)


def rss_mb():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


class Meter:
    """Collects what should be plotted after the training."""

    def __init__(self):
        self.values = defaultdict(list)

    def update(self, **kw):
        for k, v in kw.items():
            self.values[k].append(v.item() if healthy else v)

    def mean(self, k, last=50):
        with torch.no_grad():
            return float(sum(self.values[k][-last:]) / len(self.values[k][-last:]))


class ConvNet(nn.Module):
    def __init__(self, width, feature):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()
        )
        self.body = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2)
        )
        self.match = nn.Conv2d(width, feature, 1)
        self.fc = nn.Linear(width * 16, 10)

    def forward(self, x):
        low = self.stem(x)
        high = self.body(low)
        return self.fc(high.flatten(1)), self.match(low)


def accuracy(net, x, y):
    net.eval()
    with torch.no_grad():
        logits = net(x)[0]
    net.train()
    return F.cross_entropy(logits, y).item(), (logits.argmax(1) == y).float().mean().item()


# ---- data: digits, shifted and noisy
bunch = load_digits()
g = torch.Generator().manual_seed(seed)
order = torch.randperm(len(bunch.target), generator=g)
images = torch.tensor(bunch.images, dtype=torch.float32)[order, None] / 16
labels = torch.tensor(bunch.target)[order]
images = images + 0.15 * torch.randn(images.shape, generator=g)
x, y, xv, yv = images[:1300], labels[:1300], images[1300:], labels[1300:]
mean, std = x.mean(), x.std()
x, xv = (x - mean) / std, (xv - mean) / std


def augment(batch):
    dx, dy = torch.randint(-1, 2, (2,)).tolist()
    return torch.roll(batch, (dx, dy), (2, 3)) + 0.1 * torch.randn_like(batch)


# ---- teacher
teacher = ConvNet(16, 16)
teacher.match = nn.Identity()
opt = torch.optim.AdamW(teacher.parameters(), lr=2e-3, weight_decay=1e-2)
for step in range(150):
    rows = torch.randint(0, len(x), (64,))
    loss = F.cross_entropy(teacher(augment(x[rows]))[0], y[rows], label_smoothing=0.05)
    opt.zero_grad()
    loss.backward()
    opt.step()
print("teacher: val {:.3f} acc {:.3f}".format(*accuracy(teacher, xv, yv)))
teacher.eval().requires_grad_(False)

# ---- student
STEPS, T, ALPHA = 600, 3.0, 0.7
student, meter = ConvNet(8, 16), Meter()
opt = torch.optim.AdamW(student.parameters(), lr=3e-3, weight_decay=1e-3)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, 3e-3, total_steps=STEPS)
for step in range(1, STEPS + 1):
    rows = torch.randint(0, len(x), (64,))
    batch = augment(x[rows])
    with torch.no_grad():
        t_logits, t_feat = teacher(batch)
    s_logits, s_feat = student(batch)
    kd = (
        F.kl_div(F.log_softmax(s_logits / T, 1), F.softmax(t_logits / T, 1), reduction="batchmean")
        * T
        * T
    )
    ce = F.cross_entropy(s_logits, y[rows])
    hint = F.mse_loss(s_feat, t_feat)
    loss = ALPHA * kd + (1 - ALPHA) * ce + 0.1 * hint
    cosine = 1 - F.cosine_similarity(s_feat, t_feat, dim=1).mean()
    meter.update(gap=cosine, hint=hint)
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    if step % 100 == 0:
        v, acc = accuracy(student, xv, yv)
        print(
            f"step {step} loss {loss.item():.3f} gap {meter.mean('gap'):.3f} hint {meter.mean('hint'):.3f} val {v:.3f} acc {acc:.3f} rss {rss_mb():.0f} MB"  # noqa: E501
        )
