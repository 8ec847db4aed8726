"""Tells drawn shapes apart; the weights of the last epochs are averaged (SWA)."""

import torch
from data import arguments
from torch import nn
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn
from torch.utils.data import DataLoader, TensorDataset

ODD = "batches of eight, a rate that stays high at the end, batch norm recomputed for the average"


def shapes(n, g, size=14):
    """Discs, frames and crosses, in outline or thick, on noise."""
    axis = torch.arange(size).float()
    y = torch.randint(0, 3, (n,), generator=g)
    centre = 5 + 4 * torch.rand(n, 2, 1, 1, generator=g)
    radius = 3 + 1.5 * torch.rand(n, 1, 1, generator=g)
    dr = axis.view(1, -1, 1) - centre[:, 0]
    dc = axis.view(1, 1, -1) - centre[:, 1]
    round_ = (dr**2 + dc**2).sqrt() < radius
    square = torch.maximum(dr.abs(), dc.abs())
    frame = (square < radius) & (square > radius - 1.5)
    cross = (torch.minimum(dr.abs(), dc.abs()) < 1) & (square < radius)
    masks = torch.stack([round_, frame, cross])[y, torch.arange(n)].float()
    return (masks - 0.3 + 0.5 * torch.randn(n, size, size, generator=g)).unsqueeze(1), y


_, seed = arguments(__doc__)
g = torch.Generator().manual_seed(seed)
x, y = shapes(640, g)
x_val, y_val = shapes(300, g)
loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
net = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1, bias=False),
    nn.BatchNorm2d(8),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(8, 16, 3, padding=1, bias=False),
    nn.BatchNorm2d(16),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(16 * 49, 3),
)
optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-3)
averaged = AveragedModel(net)
late = SWALR(optimizer, swa_lr=0.01, anneal_epochs=1)


def accuracy(model):
    model.eval()
    with torch.no_grad():
        return (model(x_val).argmax(1) == y_val).float().mean().item()


for epoch in range(6):
    net.train()
    for xb, yb in loader:
        loss = nn.functional.cross_entropy(net(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch >= 2:
        averaged.update_parameters(net)
        late.step()
    print(f"epoch {epoch} loss {loss.item():.3f} accuracy {accuracy(net):.3f}")
update_bn(loader, averaged)
print(f"averaged: accuracy {accuracy(averaged):.3f}")
