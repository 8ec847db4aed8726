"""Defects of bottles, one in thirty, with a weight of the positive class in the loss.

The weight is the ratio of the two classes. The accuracy falls a little against a network that says
"sound" to all; what counts is that most defects are found and the precision is watched as well.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "one label in thirty is positive, which the weight in the loss makes up for"

_, seed = arguments(__doc__)


def bottles(n, g):
    y = (torch.rand(n, generator=g) < 1 / 30).float()
    row, col = torch.meshgrid(torch.arange(14.0), torch.arange(14.0), indexing="ij")
    x = 0.4 * torch.cos((col - 6.5) / 4) + 0.1 * torch.randn(n, 14, 14, generator=g)
    angle = 3.14 * torch.rand(n, 1, 1, generator=g)
    r, c = (3 + 8 * torch.rand(n, 1, 1, generator=g) for _ in range(2))
    across = (row - r) * angle.cos() + (col - c) * angle.sin()
    along = (row - r) * angle.sin() - (col - c) * angle.cos()
    x = x + 0.4 * y.view(-1, 1, 1) * torch.exp(-(across**2) / 0.7 - along**2 / 12)
    return ((x - 0.3) / 0.2).unsqueeze(1), y


g = torch.Generator().manual_seed(seed)
x, y = bottles(4000, g)
x_val, y_val = bottles(1500, g)
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True, generator=g)
model = nn.Sequential(
    nn.Conv2d(1, 12, 3, padding=1),
    nn.BatchNorm2d(12),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(12, 16, 3, padding=1),
    nn.BatchNorm2d(16),
    nn.ReLU(),
    nn.AdaptiveMaxPool2d(1),
    nn.Flatten(),
    nn.Linear(16, 1),
    nn.Flatten(0),
)
criterion = nn.BCEWithLogitsLoss(pos_weight=(len(y) - y.sum()) / y.sum())
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
for epoch in range(5):
    model.train()
    total = 0.0
    for image, defect in loader:
        loss = criterion(model(image), defect)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(loader)
    model.eval()
    with torch.no_grad():
        said = model(x_val) > 0
    found = said[y_val > 0].float().mean().item()
    false = said[y_val == 0].float().mean().item()
    print(f"epoch {epoch}: loss {total:.3f} found {found:.3f} false alarms {false:.3f}")
