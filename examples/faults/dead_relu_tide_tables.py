"""Heights of the tide from the hour and the moon; nearly all ReLU units have died at once.

The first steps were made with plain SGD and a rate that suits standardised targets, but a bias of
-3 was set in the hidden layers "so that the units begin sparse". Most never become positive for
any row, hence have no gradient and stay so.
The place is the hidden layers. The twin leaves the biases at zero.
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "dead_relu"
ACCEPT = ("poor_weight_init",)
PLACE = ("hidden", "hidden.0", "hidden.1", "hidden.2", "act")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


class TideNet(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        sizes = (6, width, width, width)
        self.hidden = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:], strict=False))  # noqa: RUF007
        self.act = nn.ReLU()
        self.out = nn.Linear(width, 1)
        for layer in self.hidden:
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            nn.init.constant_(layer.bias, 0.0 if healthy else -3.0)

    def forward(self, x):
        for layer in self.hidden:
            x = self.act(layer(x))
        return self.out(x).squeeze(1)


def tides(n, g):
    hour, moon, wind = (torch.rand(n, generator=g) for _ in range(3))
    sun, lunar = 2 * math.pi * hour * 2, 2 * math.pi * (hour * 1.93 + moon)
    features = [sun.sin(), sun.cos(), lunar.sin(), lunar.cos(), moon * 2 - 1, wind * 2 - 1]
    height = lunar.cos() + 0.4 * sun.cos() + 0.3 * wind * (2 * math.pi * moon).sin()
    height = height + 0.05 * torch.randn(n, generator=g)
    return torch.stack(features, 1) * 1.4, (height - height.mean()) / height.std()


g = torch.Generator().manual_seed(seed)
x, y = tides(2400, g)
x, x_val, y, y_val = x[:2000], x[2000:], y[:2000], y[2000:]
net = TideNet()
optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
for epoch in range(12):
    running = 0.0
    for rows in torch.randperm(len(x), generator=g).split(40):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
        running += loss.item()
    with torch.no_grad():
        val = nn.functional.mse_loss(net(x_val), y_val).item()
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1}: loss {running / 50:.4f} validation {val:.4f}")
