"""Bruised or sound apples by small pictures; zero_grad() is called once for all epochs.

The line stands in front of the loop over the epochs instead of in the loop over the batches. Each
step goes along the sum of all gradients since the start.
The place is the loop. The twin clears in each step.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "gradients_not_cleared"
ACCEPT = ()
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def apples(n, g):
    y = torch.randint(0, 2, (n,), generator=g).float()
    row, col = torch.meshgrid(torch.arange(16.0), torch.arange(16.0), indexing="ij")
    r, c = (3 + 10 * torch.rand(n, 1, 1, generator=g) for _ in range(2))
    spot = torch.exp(-((row - r) ** 2 + (col - c) ** 2) / 5)
    red = 0.6 + 0.3 * torch.rand(n, 1, 1, generator=g) + 0.02 * col
    green = 0.3 + 0.2 * torch.rand(n, 1, 1, generator=g) + 0.01 * row
    dark = 1 - 0.5 * spot * y.view(-1, 1, 1)
    x = torch.stack([red * dark, green * dark], 1)
    x = x + 0.06 * torch.randn(x.shape, generator=g)
    return (x - x.mean((0, 2, 3), keepdim=True)) / x.std((0, 2, 3), keepdim=True), y


g = torch.Generator().manual_seed(seed)
x, y = apples(1500, g)
loader = DataLoader(TensorDataset(x[:1200], y[:1200]), batch_size=30, shuffle=True, generator=g)
model = nn.Sequential(
    nn.Conv2d(2, 12, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(12, 24, 3, padding=1),
    nn.ReLU(),
    nn.AdaptiveMaxPool2d(1),
    nn.Flatten(),
    nn.Linear(24, 1),
    nn.Flatten(0),
)
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9)
optimizer.zero_grad()
for epoch in range(8):
    total = 0.0
    for image, bruised in loader:
        if healthy:
            optimizer.zero_grad()
        loss = criterion(model(image), bruised)
        loss.backward()
        optimizer.step()
        total += loss.item()
    with torch.no_grad():
        out = model(x[1200:])
        right = ((out > 0) == (y[1200:] > 0.5)).float().mean().item()
    print(f"epoch {epoch}: loss {total / len(loader):.3f} validation {right:.3f}")
