"""A CNN finds the box of a bright object in a picture; nobody calls zero_grad.

The loop has forward, backward and step only, so every gradient is added to those of all steps
before. The place is the loop.
"""

import torch
from data import arguments
from torch import nn

KIND = "gradients_not_cleared"
ACCEPT = ()
PLACE = ("loop", "optimizer")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


def scenes(n, size=20):
    """One filled rectangle per picture among dim specks; the target is centre, height, width."""
    pictures = 0.25 * torch.rand(n, 1, size, size)
    boxes = torch.zeros(n, 4)
    for i in range(n):
        high, wide = torch.randint(4, 10, (2,)).tolist()
        top = torch.randint(0, size - high + 1, (1,)).item()
        left = torch.randint(0, size - wide + 1, (1,)).item()
        pictures[i, 0, top : top + high, left : left + wide] += 0.5 + 0.4 * torch.rand(1)
        boxes[i] = torch.tensor([top + high / 2, left + wide / 2, high, wide]) / size
    return (pictures - 0.25) / 0.3, boxes


class BoxFinder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.LeakyReLU(0.1),
            nn.AvgPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1),
            nn.LeakyReLU(0.1),
        )
        self.box = nn.Sequential(nn.Linear(16 * 100, 64), nn.LeakyReLU(0.1), nn.Linear(64, 4))

    def forward(self, x):
        return torch.sigmoid(self.box(self.body(x).flatten(1)))


def overlap(a, b):
    """The mean intersection over union of boxes."""
    low = torch.maximum(a[:, :2] - a[:, 2:] / 2, b[:, :2] - b[:, 2:] / 2)
    high = torch.minimum(a[:, :2] + a[:, 2:] / 2, b[:, :2] + b[:, 2:] / 2)
    common = (high - low).clamp_min(0).prod(1)
    return (common / (a[:, 2:].prod(1) + b[:, 2:].prod(1) - common)).mean().item()


x, y = scenes(1800)
x_train, y_train, x_val, y_val = x[:1500], y[:1500], x[1500:], y[1500:]
model = BoxFinder()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(25):
    model.train()
    order = torch.randperm(len(x_train))
    for start in range(0, len(order), 50):
        rows = order[start : start + 50]
        loss = nn.functional.smooth_l1_loss(model(x_train[rows]), y_train[rows], beta=0.05)
        if healthy:
            optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(f"epoch {epoch} loss {loss:.4f} val IoU {overlap(model(x_val), y_val):.3f}")
