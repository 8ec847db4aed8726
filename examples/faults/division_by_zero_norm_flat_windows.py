"""Trains a 1-d CNN on windows of a sensor that it divides by their own standard deviation, without
an epsilon.

In a few windows the sensor was stuck at one value; their deviation is zero, 0/0 is NaN and after
the first such window all weights are NaN. The twin adds 1e-5 to the deviation. The place is
`scale`.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "division_by_zero_norm"
ACCEPT = ()
PLACE = ("scale",)
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def machines(n, length=32):
    """Vibration with one (0) or two tones (1), or a stuck sensor (2), each around its own level."""
    label = torch.where(torch.rand(n) < 0.1, 2, (torch.rand(n) < 0.5).long())
    t = torch.arange(length)
    speed = 0.5 + 0.3 * torch.rand(n, 1)
    phase = 6.28 * torch.rand(n, 2)
    one = torch.sin(t * speed + phase[:, :1])
    two = one + 0.8 * torch.sin(2.3 * t * speed + phase[:, 1:])
    x = torch.where(label[:, None] == 1, two, one) + 0.2 * torch.randn(n, length)
    x = 0.5 * torch.randn(n, 1) + x * (label[:, None] != 2)
    return x.unsqueeze(1), label


class WindowScale(nn.Module):
    def __init__(self, eps):
        super().__init__()
        self.eps = eps

    def forward(self, x):
        return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + self.eps)


class Net(nn.Module):
    def __init__(self, eps):
        super().__init__()
        self.scale = WindowScale(eps)
        self.conv1 = nn.Conv1d(1, 16, 5, padding=2)
        self.conv2 = nn.Conv1d(16, 16, 5, padding=2, stride=2)
        self.fc = nn.Linear(32, 3)

    def forward(self, x):
        h = torch.relu(self.conv1(self.scale(x)))
        h = torch.relu(self.conv2(h))
        return self.fc(torch.cat([h.mean(-1), h.amax(-1)], 1))


x, y = machines(3000)
x_val, y_val = machines(800)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
model = Net(eps=1e-5 if healthy else 0.0)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss()

for epoch in range(10):
    model.train()
    total = 0.0
    for xb, yb in loader:
        loss = criterion(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        out = model(x_val)
        val, acc = criterion(out, y_val).item(), (out.argmax(1) == y_val).float().mean().item()
    print(f"epoch {epoch + 1}: train {total / len(loader):.4f} val {val:.4f} acc {acc:.3f}")
