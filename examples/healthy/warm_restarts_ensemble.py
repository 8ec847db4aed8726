"""Snapshot ensemble of a CNN on digits: the rate is restarted four times and the loss jumps each
time.

It looks odd, since the rate leaps by two orders of magnitude upwards and the loss gets worse for
some steps after each restart. It is sound: cosine annealing with warm restarts (SGDR); every
cycle ends in a good minimum, and the average of the four snapshots predicts best.
"""

import copy

import torch
import torch.nn.functional as F
from data import arguments, batches, images
from torch import nn

ODD = (
    "Snapshot ensemble of a CNN on digits: the rate is restarted four times and the loss "
    "jumps each time"
)
_, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
g = torch.Generator().manual_seed(seed)
x_val = x_val + 0.4 * torch.randn(x_val.shape, generator=g)

CYCLES, STEPS = 4, 300


class Block(nn.Module):
    def __init__(self, c_in, c_out):
        super().__init__()
        self.conv = nn.Conv2d(c_in, c_out, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(c_out)

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)))


def build():
    return nn.Sequential(
        Block(1, 16),
        nn.MaxPool2d(2),
        Block(16, 32),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(128, 10),
    )


model = build()
optimizer = torch.optim.SGD(
    model.parameters(), lr=0.08, momentum=0.9, weight_decay=1e-3, nesterov=True
)
scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=STEPS, eta_min=4e-4)
snapshots, window = [], []
for step, (xb, yb) in enumerate(batches(x, y, size=64, steps=CYCLES * STEPS, seed=seed), 1):
    model.train()
    xb = xb + 0.4 * torch.randn_like(xb)  # noqa: PLW2901
    loss = F.cross_entropy(model(xb), yb, label_smoothing=0.05)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    window.append(loss.item())
    if step % 50 == 0:
        model.eval()
        with torch.no_grad():
            out = model(x_val)
        acc = (out.argmax(1) == y_val).float().mean().item()
        print(
            f"step {step} lr {scheduler.get_last_lr()[0]:.4f} loss {sum(window) / len(window):.4f} val loss {F.cross_entropy(out, y_val).item():.4f} val acc {acc:.4f}"  # noqa: E501
        )
        window.clear()
    if step % STEPS == 0:
        snapshots.append(copy.deepcopy(model).eval())
with torch.no_grad():
    mean = torch.stack([m(x_val).softmax(1) for m in snapshots]).mean(0)
print(
    f"ensemble of {len(snapshots)}: val acc {(mean.argmax(1) == y_val).float().mean().item():.4f}"
)
