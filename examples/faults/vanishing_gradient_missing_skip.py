"""A deep 1-D convolutional network of twenty-four residual blocks counts the pulses in noisy
signals. A block returns what its convolutions made and leaves out the addition of its input.

What is left is a plain stack of forty-eight convolutions; the gradient shrinks from layer to layer
and nothing arrives at the first ones. The loss stays at that of the constant guess. The place is
the blocks nearest to the input.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches
from torch import nn

KIND = "vanishing_gradient"
ACCEPT = ("poor_weight_init",)
PLACE = ("stem*", "blocks*")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.first, self.second = nn.Conv1d(c, c, 3, padding=1), nn.Conv1d(c, c, 3, padding=1)

    def forward(self, x):
        h = self.second(F.relu(self.first(F.relu(x))))
        return x + h if healthy else h


class Net(nn.Module):
    def __init__(self, c=12, depth=24, classes=5):
        super().__init__()
        self.stem = nn.Conv1d(1, c, 5, padding=2, stride=2)
        self.blocks = nn.Sequential(*[Block(c) for _ in range(depth)])
        self.head = nn.Linear(c, classes)

    def forward(self, x):
        return self.head(F.relu(self.blocks(self.stem(x))).mean(2))


def signals(n, g, length=64):
    y = torch.randint(0, 5, (n,), generator=g)
    x = 0.25 * torch.randn(n, length, generator=g)
    for i in range(n):
        slots = torch.randperm(6, generator=g)[: y[i]] * 10 + 2
        for s in slots.tolist():
            at = s + int(torch.randint(0, 4, (), generator=g))
            x[i, at : at + 4] += 1.0 + 0.5 * torch.rand((), generator=g)
    return x.unsqueeze(1), y


g = torch.Generator().manual_seed(seed)
x, y = signals(1500, g)
x_val, y_val = signals(400, g)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step, (xb, yb) in enumerate(batches(x, y, size=50, steps=300, seed=seed), 1):
    loss = F.cross_entropy(model(xb), yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 30 == 0:
        with torch.no_grad():
            out = model(x_val)
        right = (out.argmax(1) == y_val).float().mean().item()
        print(
            f"step {step} train {loss.item():.4f}"
            f" val {F.cross_entropy(out, y_val).item():.4f} accuracy {right:.3f}"
        )
