"""A CNN sorts drawn pictures of goods into eight classes; with one and two channels and a hidden
width of 2 it is far too small.

All the pictures must pass through two hidden units: the training loss stays far above what the
pictures allow. The place is the model (conv1, conv2, fc1).
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "low_capacity"
ACCEPT = ()
PLACE = ("conv1*", "conv2*", "fc1*", "fc2*")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

CHANNELS, HIDDEN = ((8, 16), 64) if healthy else ((1, 2), 2)
SIZE, CLASSES = 14, 8


def picture(kind, r):
    yy, xx = np.mgrid[0:SIZE, 0:SIZE].astype(np.float32)
    cx, cy, a = r.uniform(5.5, 7.5), r.uniform(5.5, 7.5), r.uniform(3.5, 5.0)
    u, v = xx - cx, yy - cy
    inside = (abs(u) < a) & (abs(v) < a)
    masks = [
        inside,
        inside & ~((abs(u) < a - 1.6) & (abs(v) < a - 1.6)),
        u**2 + v**2 < a**2,
        (u**2 + v**2 < a**2) & (u**2 + v**2 > (a - 1.8) ** 2),
        inside & ((abs(u) < 1) | (abs(v) < 1)),
        inside & ((abs(u - v) < 1.5) | (abs(u + v) < 1.5)),
        inside & (v > -a + 2 * abs(u)),
        inside & (np.floor(v + a) % 3 == 0),
    ]
    image = r.uniform(0.5, 1.0) * masks[kind] + r.normal(0, 0.22, (SIZE, SIZE))
    return image.astype(np.float32)


r = np.random.default_rng(140 + seed)
y = r.integers(0, CLASSES, 2600)
x = np.stack([picture(k, r) for k in y])[:, None]
x = (x - x[:2000].mean()) / x[:2000].std()
x, y = torch.from_numpy(x.astype(np.float32)), torch.from_numpy(y)
train = DataLoader(TensorDataset(x[:2000], y[:2000]), batch_size=40, shuffle=True)
valid = DataLoader(TensorDataset(x[2000:], y[2000:]), batch_size=200)


class GoodsNet(nn.Module):
    def __init__(self, channels, hidden):
        super().__init__()
        self.conv1 = nn.Conv2d(1, channels[0], 3, padding=1)
        self.conv2 = nn.Conv2d(channels[0], channels[1], 3, padding=1)
        self.fc1 = nn.Linear(channels[1] * 9, hidden)
        self.fc2 = nn.Linear(hidden, CLASSES)

    def forward(self, x):
        x = F.max_pool2d(F.leaky_relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.leaky_relu(self.conv2(x)), 2)
        return self.fc2(F.leaky_relu(self.fc1(x.flatten(1))))


def evaluate(model, loader):
    model.eval()
    with torch.no_grad():
        pairs = [(model(a), b) for a, b in loader]
    logits, target = (torch.cat(p) for p in zip(*pairs, strict=False))
    return F.cross_entropy(logits, target).item(), (
        logits.argmax(1) == target
    ).float().mean().item()


net = GoodsNet(CHANNELS, HIDDEN)
print("weights:", sum(p.numel() for p in net.parameters()))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(12):
    net.train()
    running = []
    for a, b in train:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(a), b)
        loss.backward()
        optimizer.step()
        running.append(loss.item())
    val_loss, val_acc = evaluate(net, valid)
    print(f"epoch {epoch:2d} train {np.mean(running):.3f} val {val_loss:.3f} acc {val_acc:.3f}")
