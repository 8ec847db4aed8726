"""A linear probe on an encoder pre-trained in the same script: almost all parameters are frozen,
yet the training is sound.

It looks odd since nine parameters of ten never get a gradient, the encoder stays in eval mode
with BatchNorm's running numbers while the head is trained, the rate of SGD is high for a head,
and features are made under no_grad. All of it is usual for linear probing: the encoder comes from
a supervised pre-training on other classes, and the probe is a convex problem.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "nine of ten parameters are frozen, and labels are smoothed in training alone"
_, seed = arguments(__doc__)

CLASSES_OLD, CLASSES_NEW, BANDS, FRAMES = 24, 6, 16, 32


def make(n, templates, g):
    y = torch.randint(0, len(templates), (n,), generator=g)
    x = templates[y]
    shift = torch.randint(-3, 4, (n,), generator=g)
    x = torch.stack([row.roll(int(s), 1) for row, s in zip(x, shift, strict=False)])
    x = x * (0.7 + 0.6 * torch.rand(n, 1, 1, generator=g)) + 2.6 * torch.randn(x.shape, generator=g)
    return x, y


g = torch.Generator().manual_seed(seed + 4)
phones = torch.randn(10, BANDS, generator=g)
order = torch.randint(0, 10, (CLASSES_OLD + CLASSES_NEW, 4), generator=g)
templates = F.interpolate(phones[order].transpose(1, 2), size=FRAMES, mode="linear")
x_old, y_old = make(3000, templates[:CLASSES_OLD], g)
x, y = make(900, templates[CLASSES_OLD:], g)
xv, yv = make(600, templates[CLASSES_OLD:], g)
mean, std = x_old.mean((0, 2), keepdim=True), x_old.std((0, 2), keepdim=True)
x_old, x, xv = ((t - mean) / std for t in (x_old, x, xv))


class Encoder(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(BANDS, width, 5, 2, 2, bias=False),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Conv1d(width, width, 5, 2, 2, bias=False),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Conv1d(width, width, 3, 1, 1, bias=False),
            nn.BatchNorm1d(width),
            nn.ReLU(),
        )

    def forward(self, x):
        h = self.layers(x)
        return F.adaptive_avg_pool1d(h, 4).flatten(1)


encoder = Encoder()
old_head = nn.Linear(192, CLASSES_OLD)
opt = torch.optim.AdamW([*encoder.parameters(), *old_head.parameters()], lr=3e-3, weight_decay=0.02)
for epoch in range(4):
    for xb, yb in DataLoader(TensorDataset(x_old, y_old), 64, shuffle=True, drop_last=True):
        loss = F.cross_entropy(old_head(encoder(xb)), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"pretrain {epoch} loss {loss.item():.3f}")


class Probe(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder.requires_grad_(False)
        self.scale = nn.BatchNorm1d(192, affine=False)
        self.head = nn.Linear(192, CLASSES_NEW)

    def train(self, mode=True):
        super().train(mode)
        self.encoder.eval()
        return self

    def forward(self, x):
        with torch.no_grad():
            h = self.encoder(x)
        return self.head(self.scale(h))


probe = Probe(encoder)
opt = torch.optim.SGD(probe.head.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-3)
EPOCHS = 15
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, EPOCHS)
loader = DataLoader(TensorDataset(x, y), 60, shuffle=True)
for epoch in range(EPOCHS):
    probe.train()
    total = 0.0
    for xb, yb in loader:
        loss = F.cross_entropy(probe(xb), yb, label_smoothing=0.05)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    sched.step()
    probe.eval()
    with torch.no_grad():
        out = probe(xv)
    print(
        f"probe {epoch:2d} train {total / len(loader):.3f} val {F.cross_entropy(out, yv).item():.3f} acc {(out.argmax(1) == yv).float().mean():.3f}"  # noqa: E501
    )
