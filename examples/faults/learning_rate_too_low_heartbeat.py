"""A 1-D CNN sorts synthetic heartbeats into three rhythms, with an SGD rate of 1e-6.

Someone carried over the rate of the fine-tuning of another model. The loss creeps downwards by
thousandths and the weights hardly leave their start. The place is the optimizer.
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "learning_rate_too_low"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


def heartbeats(n, length=96):
    """Regular, irregular and double beats on a wandering base line."""
    y = torch.randint(0, 3, (n,))
    t = torch.arange(length).float()
    x = torch.zeros(n, length)
    for i in range(n):
        at, gap = 12 * torch.rand(1).item(), 16 + 6 * torch.rand(1).item()
        while at < length:
            x[i] += torch.exp(-((t - at) ** 2) / 3)
            if y[i] == 2:
                x[i] += 0.7 * torch.exp(-((t - at - 6) ** 2) / 3)
            at += gap * (1 + (0.45 * (2 * torch.rand(1).item() - 1) if y[i] == 1 else 0))
    drift = 0.3 * torch.sin(2 * math.pi * (t / length + torch.rand(n, 1)))
    x = x + drift + 0.15 * torch.randn(n, length)
    return ((x - x.mean()) / x.std()).unsqueeze(1), y


class RhythmNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv1d(1, 16, 7, padding=3)
        self.norm1 = nn.BatchNorm1d(16)
        self.deep = nn.Conv1d(16, 32, 7, stride=2, padding=3)
        self.norm2 = nn.BatchNorm1d(32)
        self.wide = nn.Conv1d(32, 32, 9, stride=2, padding=4)
        self.head = nn.Linear(64, 3)

    def forward(self, x):
        x = torch.relu(self.norm1(self.stem(x)))
        x = torch.relu(self.norm2(self.deep(x)))
        x = torch.relu(self.wide(x))
        return self.head(torch.cat([x.mean(2), x.amax(2)], 1))


x, y = heartbeats(1600)
x_train, y_train, x_val, y_val = x[:1200], y[:1200], x[1200:], y[1200:]
model = RhythmNet()
optimizer = torch.optim.SGD(model.parameters(), lr=0.03 if healthy else 1e-6, momentum=0.9)
criterion = nn.CrossEntropyLoss()
for epoch in range(9):
    model.train()
    for rows in torch.randperm(len(x_train)).split(48):
        loss = criterion(model(x_train[rows]), y_train[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        out = model(x_val)
        val, right = criterion(out, y_val), (out.argmax(1) == y_val).float().mean()
    print(f"epoch {epoch} train {loss:.4f} val {val:.4f} accuracy {right:.3f}")
