"""Will there be birds over the runway? One output, a softmax over it, and BCELoss.

A softmax of one number is 1, whatever the number. BCELoss gets ones for all hours, takes its
highest value for each hour without birds, and no gradient arrives anywhere.
The place is the last layers. The twin has a sigmoid.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "softmax_single_unit"
ACCEPT = ("wrong_loss",)
PLACE = ("4", "5", "loss*", "output*")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def hours(n, g):
    x = torch.randn(n, 9, generator=g)
    dawn = torch.exp(-(x[:, 0] ** 2) * 2)
    score = 3 * dawn - 1 + 1.2 * x[:, 1] - x[:, 2] * (x[:, 3] > 0) + 0.8 * x[:, 4]
    return x, (score + 0.4 * torch.randn(n, generator=g) > 0.6).float()


x, y = hours(2500, torch.Generator().manual_seed(seed))
train = DataLoader(TensorDataset(x[:2000], y[:2000]), batch_size=50, shuffle=True)
model = nn.Sequential(
    nn.Linear(9, 48),
    nn.ReLU(),
    nn.Linear(48, 24),
    nn.ReLU(),
    nn.Linear(24, 1),
    nn.Sigmoid() if healthy else nn.Softmax(dim=1),
)
criterion = nn.BCELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(10):
    losses = []
    for xb, yb in train:
        loss = criterion(model(xb), yb.unsqueeze(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        said = model(x[2000:]).squeeze(1)
    right = ((said > 0.5) == (y[2000:] > 0.5)).float().mean().item()
    print(f"epoch {epoch}: loss {sum(losses) / len(losses):.3f} validation {right:.3f}")
