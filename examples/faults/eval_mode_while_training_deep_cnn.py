"""A deep convolutional net for leaf textures whose first validation puts it into evaluation mode
for good.

The user checks the validation before the training, which calls model.eval(), and never calls
model.train() again: batch norm keeps its initial statistics (mean 0, variance 1) all the time, so
nothing is normalised. The place is the loop (or any of the norm layers).
"""

import numpy as np
import torch
from data import arguments, batches
from torch import nn

KIND = "eval_mode_while_training"
ACCEPT = ()
PLACE = ("loop", "", "blocks*", "*norm*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


def textures(n, seed, size=16):
    r = np.random.default_rng(seed)
    label = r.integers(0, 5, n)
    yy, xx = np.mgrid[:size, :size]
    images = np.empty((n, size, size))
    for i, kind in enumerate(label):
        angle = kind * np.pi / 5 + r.normal(0, 0.14)
        along = xx * np.cos(angle) + yy * np.sin(angle)
        images[i] = np.sin(along * r.uniform(0.9, 1.6) + r.uniform(0, 6.283)) * r.uniform(
            0.5, 1.2
        ) + r.normal(0, 0.8, (size, size))
    x = torch.tensor(images, dtype=torch.float32)[:, None]
    return (x - x.mean()) / x.std(), torch.tensor(label)


class Block(nn.Module):
    def __init__(self, inner, outer, stride=1):
        super().__init__()
        self.conv = nn.Conv2d(inner, outer, 3, padding=1, stride=stride, bias=False)
        self.norm = nn.BatchNorm2d(outer)

    def forward(self, x):
        return self.norm(self.conv(x)).relu()


class LeafNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(
            Block(1, 12),
            Block(12, 12),
            Block(12, 24, 2),
            Block(24, 24),
            Block(24, 24),
            Block(24, 32, 2),
            Block(32, 32),
            Block(32, 32),
        )
        self.head = nn.Linear(32, 5)

    def forward(self, x):
        return self.head(self.blocks(x).mean((2, 3)))


@torch.no_grad()
def validate(model, x, y):
    model.eval()
    scores = model(x)
    return nn.functional.cross_entropy(scores, y).item(), (
        scores.argmax(1) == y
    ).float().mean().item()


x, y = textures(2600, seed)
x, y, x_val, y_val = x[:2000], y[:2000], x[2000:], y[2000:]
model = LeafNet()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=5e-4)
print(
    "before the training: validation loss {:.3f} accuracy {:.3f}".format(
        *validate(model, x_val, y_val)
    )
)

for step, (xb, yb) in enumerate(batches(x, y, size=50, steps=240, seed=seed)):
    if healthy:
        model.train()
    loss = nn.functional.cross_entropy(model(xb), yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 40 == 39:
        val_loss, accuracy = validate(model, x_val, y_val)
        print(
            f"step {step + 1} loss {loss.item():.3f} validation loss {val_loss:.3f} accuracy {accuracy:.3f}"  # noqa: E501
        )
