"""Two groups with two rates for a convolutional net; the parameters are counted before.

Fault: `parameters()` is a generator, the count uses it up, and the group of the convolutions is
empty: only the head learns. The place is the optimizer; the convolutions. The loss falls somewhat.
Exact.
"""

import torch
from data import arguments, batches, images
from torch import nn
from torch.nn import functional as F

KIND = "parameters_not_in_optimizer"
ACCEPT = ("frozen_parameters",)
PLACE = ("features*", "optimizer")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 6, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(6, 10, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveMaxPool2d(1),
        )
        self.head = nn.Linear(10, 10)

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


def show(name, parameters):
    print(f"{name}: {sum(p.numel() for p in parameters)} parameters")


net = Net()
body = list(net.features.parameters()) if healthy else net.features.parameters()
head = net.head.parameters()
show("features", body)
optimizer = torch.optim.Adam([{"params": body, "lr": 5e-3}, {"params": head, "lr": 1e-2}])

x, y, x_val, y_val = images(seed)
for step, (xb, yb) in enumerate(batches(x, y, size=64, steps=350, seed=seed), 1):
    optimizer.zero_grad()
    loss = F.cross_entropy(net(xb), yb)
    loss.backward()
    optimizer.step()
    if step % 70 == 0:
        with torch.no_grad():
            accuracy = (net(x_val).argmax(1) == y_val).float().mean().item()
        print(f"step {step}: loss {loss.item():.4f}, validation accuracy {accuracy:.3f}")
print(f"loss {loss.item():.4f} | validation accuracy {accuracy:.3f}")
