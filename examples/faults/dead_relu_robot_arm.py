"""An MLP learns where a three-jointed arm reaches; its hidden biases start at -6.

A helper sets every bias to -6 "to get sparse activations", which with standard weights keeps
nearly all ReLU units at 0 for every input. No gradient reaches them. The place is the hidden ReLU
layers.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "dead_relu"
ACCEPT = ("poor_weight_init",)
PLACE = ("trunk*",)
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


def arm(n):
    """Sines and cosines of three joint angles; the reached point, measured with some error."""
    angle = math.pi * (2 * torch.rand(n, 3) - 1)
    total = angle.cumsum(1)
    length = torch.tensor([1.0, 0.7, 0.4])
    point = torch.stack([(length * total.cos()).sum(1), (length * total.sin()).sum(1)], 1)
    x = torch.cat([angle.cos(), angle.sin()], 1)
    return x / x.std(0), point / point.std(0) + 0.03 * torch.randn(n, 2)


def start(layer):
    if isinstance(layer, nn.Linear):
        nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        nn.init.constant_(layer.bias, 0.0 if healthy else -6.0)


class ArmNet(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(6, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
        )
        self.trunk.apply(start)
        self.point = nn.Linear(hidden, 2)

    def forward(self, x):
        return self.point(self.trunk(x))


x, y = arm(4000)
train = DataLoader(TensorDataset(x[:3200], y[:3200]), batch_size=64, shuffle=True)
val = DataLoader(TensorDataset(x[3200:], y[3200:]), batch_size=400)
model = ArmNet()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 10, 0.3)
for epoch in range(25):
    model.train()
    for a, b in train:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(a), b)
        loss.backward()
        optimizer.step()
    schedule.step()
    model.eval()
    with torch.no_grad():
        error = sum(nn.functional.mse_loss(model(a), b).item() for a, b in val) / len(val)
    print(f"epoch {epoch} train {loss.item():.4f} val mse {error:.4f}")
