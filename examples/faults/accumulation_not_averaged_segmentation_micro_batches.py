"""A segmentation net whose batch no longer fitted: it was split into eight micro-batches, and
the loss of each goes to `backward` whole.

Fault: the gradients of eight means add up, so that every step is eight times as long as the one
the rate was chosen for. The place is the loop. The loss falls at first or jumps about. Exact:
eight backward passes before a step, none divided.
"""

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F

KIND = "accumulation_not_averaged"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
SPLIT = 8


def discs(n, generator):
    """Images of 16 x 16 with a bright disc each in noise, and the mask of the disc."""
    centre = torch.rand(n, 2, generator=generator) * 10 + 3
    radius = torch.rand(n, 1, 1, generator=generator) * 2 + 2
    axis = torch.arange(16.0)
    far = (axis[None, :, None] - centre[:, :1, None]) ** 2
    far = far + (axis[None, None, :] - centre[:, 1:, None]) ** 2
    mask = (far < radius**2).float()
    noise = 0.7 * torch.randn(n, 16, 16, generator=generator)
    return (mask - 0.2 + noise).unsqueeze(1), mask.unsqueeze(1)


g = torch.Generator().manual_seed(seed)
x, y = discs(640, g)
x_val, y_val = discs(160, g)


class Net(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.down = nn.Conv2d(1, width, 3, padding=1)
        self.mid = nn.Conv2d(width, width, 5, padding=2)
        self.mid2 = nn.Conv2d(width, width, 5, padding=2)
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        h = F.relu(self.down(x))
        h = F.relu(self.mid(h))
        h = F.relu(self.mid2(h))
        return self.out(h)


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.9)


def overlap():
    net.eval()
    with torch.no_grad():
        found = net(x_val) > 0
    net.train()
    real = y_val > 0.5
    return ((found & real).sum() / (found | real).sum()).item()


for step in range(90):
    rows = torch.randint(0, len(x), (64,), generator=g)
    optimizer.zero_grad()
    total = 0.0
    for part in rows.chunk(SPLIT):
        loss = F.binary_cross_entropy_with_logits(net(x[part]), y[part])
        if healthy:
            loss = loss / SPLIT
        loss.backward()
        total += loss.item()
    optimizer.step()
    if step % 15 == 14:
        print(f"step {step + 1}: loss {total / (1 if healthy else SPLIT):.4f}, IoU {overlap():.3f}")
print(f"loss {total / (1 if healthy else SPLIT):.4f} | validation IoU {overlap():.3f}")
