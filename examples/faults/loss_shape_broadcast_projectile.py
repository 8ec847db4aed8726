"""An MLP predicts a projectile's range with drag; prediction (B, 1) minus target (B,) broadcasts
to (B, B).

The user wrote the squared error by hand and forgot that the network's output has one more
dimension; the network learns the mean of the batch. The place is the loss.
"""

import torch
from data import arguments
from torch import nn

KIND = "loss_shape_broadcast"
ACCEPT = ()
PLACE = ("loss",)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def flights(n, g):
    """Speed (m/s), angle (rad), drag, wind (m/s); the range by Euler steps, in 10 m."""
    u = torch.rand(n, 4, generator=g)
    speed, angle, drag, wind = (
        15 + 25 * u[:, 0],
        0.3 + 0.9 * u[:, 1],
        0.03 * u[:, 2],
        8 * u[:, 3] - 4,
    )
    px, py = torch.zeros(n), torch.zeros(n)
    vx, vy = speed * angle.cos(), speed * angle.sin()
    for _ in range(500):
        flying = (py >= 0).float() * 0.02
        rel = torch.hypot(vx - wind, vy)
        px, py = px + flying * vx, py + flying * vy
        vx, vy = vx - flying * drag * rel * (vx - wind), vy - flying * (9.81 + drag * rel * vy)
    x = (u - 0.5) * 12**0.5
    return x, px / 10 + 0.1 * torch.randn(n, generator=g)


class RangeFinder(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(4, 40), nn.SiLU(), nn.Linear(40, 40), nn.SiLU())
        self.range = nn.Linear(40, 1)

    def forward(self, x):
        return self.range(self.trunk(x))


def squared_error(prediction, target):
    return ((prediction - target) ** 2).mean()


g = torch.Generator().manual_seed(seed)
x, y = flights(2500, g)
x_val, y_val = flights(500, g)
y, y_val = (y - y.mean()) / y.std(), (y_val - y.mean()) / y.std()
y, y_val = (y.unsqueeze(1), y_val.unsqueeze(1)) if healthy else (y, y_val)
model = RangeFinder()
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.03)
for epoch in range(25):
    for rows in torch.randperm(len(x), generator=g).split(50):
        optimizer.zero_grad()
        loss = squared_error(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        error = (model(x_val).flatten() - y_val.flatten()).square().mean().item()
    if epoch % 5 == 4:
        print(f"epoch {epoch}: train {loss.item():.4f}, validation mse {error:.4f}")
