"""A residual MLP forecasts tomorrow's weather (one of five) from sensors; eight micro-batches make
one step.

The loss of a micro-batch is not divided by their number, so the gradient of a step is eight times
that of the batch, and SGD's rate, chosen for whole batches, is eight times too large. The place
is the loop.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "accumulation_not_averaged"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("loop", "optimizer")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

MICRO, PARTS = 16, 8


def stations(n):
    """Twelve readings of a station of today; from very cold to very hot for tomorrow."""
    x = torch.randn(n, 12)
    pressure, humidity, wind, angle = x[:, 0], x[:, 1], x[:, 2].abs(), math.pi * x[:, 3]
    y = 0.8 * x[:, 4] + 0.5 * pressure * torch.tanh(humidity) + 0.5 * wind * torch.cos(angle)
    y = y - 0.4 * torch.relu(x[:, 5] + x[:, 6]) + 0.1 * torch.randn(n)
    return x, torch.bucketize(y, y.quantile(torch.tensor([0.2, 0.4, 0.6, 0.8])))


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Linear(width, width)
        self.outer = nn.Linear(width, width)

    def forward(self, x):
        return x + self.outer(torch.relu(self.inner(x)))


class Forecast(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.enter = nn.Linear(12, width)
        self.blocks = nn.Sequential(Block(width), Block(width), Block(width))
        self.leave = nn.Linear(width, 5)

    def forward(self, x):
        return self.leave(torch.relu(self.blocks(self.enter(x))))


x, y = stations(9000)
train = DataLoader(
    TensorDataset(x[:8000], y[:8000]), batch_size=MICRO, shuffle=True, drop_last=True
)
x_val, y_val = x[8000:], y[8000:]
model = Forecast()
optimizer = torch.optim.SGD(model.parameters(), lr=0.06, momentum=0.9)
criterion = nn.CrossEntropyLoss()

for epoch in range(9):
    model.train()
    total = 0.0
    optimizer.zero_grad()
    for i, (a, b) in enumerate(train):
        if i >= len(train) // PARTS * PARTS:
            break
        loss = criterion(model(a), b)
        total += loss.item()
        if healthy:
            loss = loss / PARTS
        loss.backward()
        if i % PARTS == PARTS - 1:
            optimizer.step()
            optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        out = model(x_val)
        val, right = criterion(out, y_val), (out.argmax(1) == y_val).float().mean()
    print(f"epoch {epoch} train {total / len(train):.4f} val {val:.4f} accuracy {right:.3f}")
