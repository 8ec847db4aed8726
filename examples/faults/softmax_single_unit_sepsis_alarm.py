"""Alarm for sepsis: the one output of the network goes through a softmax.

The network had had two outputs. It was cut down to one for the binary cross-entropy, and the
softmax stayed. A softmax over one number is always 1, so the network always says yes.
The place is the output (or the loss). The twin has a sigmoid there.
"""

import torch
from data import arguments
from torch import nn

KIND = "softmax_single_unit"
ACCEPT = ("step_without_gradient",)
PLACE = ("output*", "loss*", "net.5", "net.4", "net")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def patients(n):
    pulse = 85 + 15 * torch.randn(n)
    fever = 37.2 + 0.8 * torch.randn(n)
    lactate = torch.exp(0.4 + 0.5 * torch.randn(n))
    pressure = 120 - 18 * torch.randn(n)
    white = 9 + 3 * torch.randn(n)
    score = (pulse - 85) / 15 + (fever - 37.2) / 0.8 + 1.5 * (lactate - 1.7)
    score = score - (pressure - 120) / 18 + 0.5 * ((white - 9) / 3) ** 2 - 1.2
    sepsis = (torch.rand(n) < torch.sigmoid(1.5 * score)).float()
    return torch.stack([pulse, fever, lactate, pressure, white], 1), sepsis.unsqueeze(1)


x, y = patients(1600)
x_val, y_val = patients(600)
mean, std = x.mean(0), x.std(0)
x, x_val = (x - mean) / std, (x_val - mean) / std

net = nn.Sequential(
    nn.Linear(5, 32),
    nn.ReLU(),
    nn.Linear(32, 16),
    nn.ReLU(),
    nn.Linear(16, 1),
    nn.Sigmoid() if healthy else nn.Softmax(dim=1),
)
bce = nn.BCELoss()
optimizer = torch.optim.RMSprop(net.parameters(), lr=1e-3)
for epoch in range(1, 13):
    for rows in torch.randperm(len(x)).split(40):
        optimizer.zero_grad()
        loss = bce(net(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
    if epoch % 3 == 0:
        with torch.no_grad():
            p = net(x_val)
        right = ((p > 0.5).float() == y_val).float().mean().item()
        print(
            f"{epoch:2d}  loss {loss.item():.4f}  validation {bce(p, y_val).item():.4f}  "
            f"right {right:.3f}"
        )
