"""Trains an MLP classifier of two interleaved spirals with Adam and an epsilon of 1.

The value was taken from a recipe for another optimizer and a far larger rate. With epsilon above
the size of the gradients Adam is plain SGD at the rate 0.003, and the loss falls only a little. The
twin leaves epsilon at 1e-8. The place is the optimizer.
"""

import math

import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "bad_optimizer_settings"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("optimizer",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def spirals(n):
    label = torch.randint(0, 2, (n,))
    radius = torch.rand(n).sqrt()
    angle = 2.2 * math.pi * radius + math.pi * label
    points = torch.stack([radius * angle.cos(), radius * angle.sin()], 1)
    return points + 0.03 * torch.randn(n, 2), label


x, y = spirals(3000)
x_val, y_val = spirals(1000)
x, x_val = standardise(x, x_val)
loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)

model = nn.Sequential(
    nn.Linear(2, 64),
    nn.ReLU(),
    nn.Linear(64, 64),
    nn.ReLU(),
    nn.Linear(64, 2),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, eps=1e-8 if healthy else 1.0)

for epoch in range(1, 21):
    model.train()
    correct, total_loss = 0, 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        out = model(xb)
        loss = criterion(out, yb)
        loss.backward()
        optimizer.step()
        total_loss += loss.item() * len(xb)
        correct += (out.argmax(1) == yb).sum().item()
    if epoch % 4 == 0:
        model.eval()
        with torch.no_grad():
            val_acc = (model(x_val).argmax(1) == y_val).float().mean().item()
        print(
            f"{epoch:3d} loss {total_loss / len(x):.4f} acc {correct / len(x):.3f} "
            f"val acc {val_acc:.3f}"
        )
