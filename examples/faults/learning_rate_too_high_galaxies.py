"""A small CNN sorts drawn galaxies into elliptical, spiral and edge-on; Adagrad runs at a rate of
1.

The student kept the rate of another optimizer's exercise. The first steps throw the weights
about, the loss jumps far above its start and the network ends worse than it could by far. The
place is the optimizer.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "learning_rate_too_high"
ACCEPT = ("dead_relu",)
PLACE = ("optimizer",)
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

SIDE = 24
g = torch.Generator().manual_seed(180 + seed)
v, u = torch.meshgrid(torch.linspace(-1, 1, SIDE), torch.linspace(-1, 1, SIDE), indexing="ij")


def draw(n):
    def between(low, high):
        return low + (high - low) * torch.rand(n, 1, 1, generator=g)

    kind = torch.randint(0, 3, (n,), generator=g)
    angle, size = between(0, 3.1416), between(0.25, 0.5)
    du, dv = u - between(-0.15, 0.15), v - between(-0.15, 0.15)
    a, b = du * angle.cos() + dv * angle.sin(), dv * angle.cos() - du * angle.sin()
    rho = (du**2 + dv**2).sqrt()
    elliptic = torch.exp(-((a / size) ** 2 + (b / (size * between(0.6, 1.0))) ** 2).sqrt() * 1.5)
    winding = between(5, 8)
    arms = 0.5 + 0.5 * torch.cos(2 * (torch.atan2(dv, du) - angle) - winding * rho)
    spiral = torch.exp(-rho / size * 1.2) * (0.35 + arms)
    edge = torch.exp(-(a / size).abs() * 1.2 - (b / (size * between(0.12, 0.3))).abs())
    x = between(0.6, 1.4) * torch.stack([elliptic, spiral, edge])[kind, torch.arange(n)]
    return (x + 0.07 * torch.randn(n, SIDE, SIDE, generator=g)).unsqueeze(1), kind


class Sorter(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 5, stride=2, padding=2)
        self.conv2 = nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.fc1 = nn.Linear(16 * 36, 32)
        self.fc2 = nn.Linear(32, 3)

    def forward(self, x):
        x = F.relu(self.conv2(F.relu(self.conv1(x))))
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


x, y = draw(2000)
x_val, y_val = draw(500)
mean, std = x.mean(), x.std()
x, x_val = (x - mean) / std, (x_val - mean) / std
model = Sorter()
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01 if healthy else 1.0)
for epoch in range(16):
    losses = []
    for rows in torch.randperm(len(x)).split(50):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        out = model(x_val)
        val, accuracy = (
            F.cross_entropy(out, y_val).item(),
            (out.argmax(1) == y_val).float().mean().item(),
        )
    print(
        f"epoch {epoch} train {sum(losses) / len(losses):.3f} val {val:.3f} accuracy {accuracy:.3f}"
    )
