"""Trains a CNN on synthetic images of shapes with a loop that calls scheduler.step() and never
optimizer.step().

The gradients are computed and cleared in each iteration but not used; all weights keep their first
values. The loss stays near ln 3. The twin calls optimizer.step() before the scheduler. The place is
the optimizer or the loop.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "optimizer_never_steps"
ACCEPT = ()
PLACE = ("optimizer", "loop")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def shapes(n, size=12):
    """Bars, crosses and boxes at random places, in noise."""
    pictures = 0.3 * torch.randn(n, 1, size, size)
    labels = torch.randint(0, 3, (n,))
    for i, label in enumerate(labels.tolist()):
        r, c = torch.randint(0, size - 5, (2,)).tolist()
        if label == 0:
            pictures[i, 0, r : r + 5, c + 2] += 1
        elif label == 1:
            pictures[i, 0, r : r + 5, c + 2] += 1
            pictures[i, 0, r + 2, c : c + 5] += 1
        else:
            pictures[i, 0, r : r + 5, [c, c + 4]] += 1
            pictures[i, 0, [r, r + 4], c : c + 5] += 1
    return pictures, labels


x, y = shapes(2400)
mean, std = x.mean(), x.std()
x_val, y_val = shapes(600)
x, x_val = (x - mean) / std, (x_val - mean) / std
loader = DataLoader(TensorDataset(x, y), batch_size=48, shuffle=True)

model = nn.Sequential(
    nn.Conv2d(1, 12, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(12, 24, 3, padding=1),
    nn.ReLU(),
    nn.AdaptiveMaxPool2d(2),
    nn.Flatten(),
    nn.Linear(96, 3),
)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
epochs = 8
scheduler = torch.optim.lr_scheduler.LinearLR(
    optimizer, start_factor=1.0, end_factor=0.05, total_iters=epochs * len(loader)
)
criterion = nn.CrossEntropyLoss()

for epoch in range(epochs):
    model.train()
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        if healthy:
            optimizer.step()
        scheduler.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        out = model(x_val)
    val, acc = criterion(out, y_val), (out.argmax(1) == y_val).float().mean()
    print(f"epoch {epoch} train {total / len(loader):.4f} val {val:.4f} acc {acc:.3f}")
