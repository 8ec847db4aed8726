"""Heart beats as curves: whether the pulse after the main spike is upright, flat or turned over.

Fault: augmentations taken over from a library for accelerometers: with one chance in two the sign
of a curve is flipped, with one in two time runs backwards; here the sign is the class. The place
is the loader. The training loss stays high.
"""

import torch
from data import arguments, batches
from torch import nn
from torch.nn import functional as F

KIND = "destructive_augmentation"
ACCEPT = ("label_noise", "train_val_mismatch")
PLACE = ("loader", "input*")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
g = torch.Generator().manual_seed(seed + 7)


def beats(n):
    t = torch.linspace(0, 1, 48)
    y = torch.randint(0, 3, (n,), generator=g)
    start = 0.25 + 0.15 * torch.rand(n, 1, generator=g)
    spike = torch.exp(-(((t - start) / 0.02) ** 2)) * torch.sign(
        torch.rand(n, 1, generator=g) - 0.5
    )
    later = torch.exp(-(((t - start - 0.3) / 0.06) ** 2)) * (1 - y[:, None]) * 0.8
    return (spike + later + 0.15 * torch.randn(n, 48, generator=g)).unsqueeze(1), y


def jitter(x):
    return x + 0.05 * torch.randn_like(x)


def invert(x):
    return torch.where(torch.rand(len(x), 1, 1) < 0.5, -x, x)


def reverse(x):
    return torch.where(torch.rand(len(x), 1, 1) < 0.5, x.flip(-1), x)


augment = [jitter] if healthy else [jitter, invert, reverse]
x, y = beats(900)
x_val, y_val = beats(300)
net = nn.Sequential(
    nn.Conv1d(1, 12, 7, padding=3),
    nn.ReLU(),
    nn.MaxPool1d(2),
    nn.Conv1d(12, 24, 7, padding=3),
    nn.ReLU(),
    nn.AdaptiveMaxPool1d(3),
    nn.Flatten(),
    nn.Linear(72, 3),
)
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
for step, (xb, yb) in enumerate(batches(x, y, size=48, steps=300, seed=seed), 1):
    for change in augment:
        xb = change(xb)  # noqa: PLW2901
    loss = F.cross_entropy(net(xb), yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        with torch.no_grad():
            score = (net(x_val).argmax(1) == y_val).float().mean().item()
        print(f"step {step}: loss {loss.item():.4f}, validation accuracy {score:.3f}")
print(f"loss {loss.item():.4f} | validation accuracy {score:.3f}")
