"""Snapshots with warm restarts: the rate goes to a thousandth and back to its full height four
times, and the loss jumps up each time; the four snapshots vote in the end.
"""

import copy

import torch
from data import arguments, batches, images
from torch import nn
from torch.nn import functional as F

ODD = "the rate collapses and returns, the loss jumps up at each restart, momentum is dropped there"

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
net = nn.Sequential(
    nn.Conv2d(1, 12, 3, padding=1),
    nn.BatchNorm2d(12),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(12, 20, 3, padding=1),
    nn.BatchNorm2d(20),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(320, 10),
)
optimizer = torch.optim.SGD(net.parameters(), lr=0.15, momentum=0.9, weight_decay=1e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 80, eta_min=1.5e-4)
snapshots = []
for step, (xb, yb) in enumerate(batches(x, y, size=48, steps=320, seed=seed), 1):
    net.train()
    loss = F.cross_entropy(net(xb), yb, label_smoothing=0.1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 80 == 0:
        optimizer.state.clear()  # a new search begins
        net.eval()
        snapshots.append(copy.deepcopy(net))
        with torch.no_grad():
            votes = torch.stack([s(x_val).softmax(1) for s in snapshots]).mean(0)
        accuracy = (votes.argmax(1) == y_val).float().mean().item()
        print(f"step {step}: loss {loss.item():.4f}, accuracy of {len(snapshots)} {accuracy:.3f}")
print(f"loss {loss.item():.4f} | validation accuracy {accuracy:.3f}")
