"""Bees at the entrance of a hive from short clips; ten micro-batches make a step and are summed.

The pictures of a clip are large, so the batch of 80 became ten of 8. backward() adds up what each
brings, and nobody divides: with momentum the step is ten times as long as the rate was tuned for.
The place is the loop and the loss. The twin divides each loss by ten.
"""

import torch
from data import arguments
from torch import nn

KIND = "accumulation_not_averaged"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("loop", "loss*", "optimizer")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
MICRO, PARTS = 8, 10


def clips(n, g):
    """Three frames of 16 by 16; bees are bright points that move on by a pixel."""
    count = torch.randint(0, 7, (n,), generator=g)
    x = torch.zeros(n, 3, 16, 16)
    for bee in range(6):
        there = (count > bee).nonzero().squeeze(1)
        r = torch.randint(1, 15, (len(there),), generator=g)
        c = torch.randint(0, 13, (len(there),), generator=g)
        for frame in range(3):
            x[there, frame, r, c + frame] += 1.0
    x = x + 0.1 * torch.randn(x.shape, generator=g)
    return (x - 0.015) / 0.16, count.float() / 2 - 1.5


model = nn.Sequential(
    nn.Conv2d(3, 16, 3, padding=1),
    nn.ReLU(),
    nn.Conv2d(16, 16, 3, padding=1),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(2),
    nn.Flatten(),
    nn.Linear(64, 1),
    nn.Flatten(0),
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9)
g = torch.Generator().manual_seed(seed)
x, y = clips(1600, g)
x_val, y_val = clips(400, g)
for epoch in range(12):
    optimizer.zero_grad()
    total = 0.0
    for i, rows in enumerate(torch.randperm(len(x), generator=g).split(MICRO)):
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        total += loss.item() * len(rows)
        (loss / PARTS if healthy else loss).backward()
        if (i + 1) % PARTS == 0:
            optimizer.step()
            optimizer.zero_grad()
    with torch.no_grad():
        val = nn.functional.mse_loss(model(x_val), y_val).item()
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1}: loss {total / len(x):.4f} validation {val:.4f}")
