"""A regression network for a curved surface is a stack of four linear layers with no activation in
between.

Linear layers in a row are one linear map, so the extra layers add nothing and the network fits a
plane. The training error stays near the variance of the target. The twin has ReLUs in between. The
place is `net.0`, `net.1`, `net.2` or `net.3`.
"""

from itertools import pairwise

import torch
from data import arguments
from torch import nn

KIND = "no_nonlinearity"
ACCEPT = ("low_capacity",)
PLACE = ("net.0", "net.1", "net.2", "net.3")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def surface(n):
    x = torch.rand(n, 2) * 4 - 2
    y = torch.sin(2 * x[:, 0]) * x[:, 1] + 0.4 * x[:, 1] ** 2 + 0.3 * x[:, 0]
    return x, y.unsqueeze(1) + 0.05 * torch.randn(n, 1)


class Regressor(nn.Module):
    def __init__(self, sizes=(2, 64, 64, 32, 1)):
        super().__init__()
        layers = []
        for i, (a, b) in enumerate(pairwise(sizes)):
            layers.append(nn.Linear(a, b))
            if healthy and i < len(sizes) - 2:
                layers.append(nn.ReLU())
        self.net = nn.Sequential(*layers)

    def forward(self, x):
        return self.net(x)


x, y = surface(3000)
x_val, y_val = surface(600)
mean, std = y.mean(), y.std()
y, y_val = (y - mean) / std, (y_val - mean) / std

model = Regressor()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
criterion = nn.MSELoss()
epochs, batch_size = 24, 64
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)

for epoch in range(epochs):
    model.train()
    order = torch.randperm(len(x))
    total = 0.0
    for start in range(0, len(x), batch_size):
        rows = order[start : start + batch_size]
        loss = criterion(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    scheduler.step()
    if epoch % 4 == 3:
        model.eval()
        with torch.no_grad():
            r2 = 1 - criterion(model(x_val), y_val).item() / y_val.var().item()
        print(f"epoch {epoch + 1}: mse {total / len(x):.4f}, val R2 {r2:.3f}")
