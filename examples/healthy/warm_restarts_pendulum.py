"""The motion of a pendulum, learnt with warm restarts of the learning rate.

The rate falls along a cosine and jumps back to its start, three times; the loss rises a little at
each restart and ends lower than before.
"""

import torch
from data import arguments
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingWarmRestarts

ODD = "the learning rate jumps from nearly 0 to its start three times, and the loss with it"

_, seed = arguments(__doc__)


class Pendulum(nn.Module):
    """Acceleration from the angle (as sine and cosine), the speed and the friction."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(4, 48), nn.SiLU(), nn.Linear(48, 48), nn.SiLU(), nn.Linear(48, 1)
        )

    def forward(self, state):
        angle, rest = state[:, :1], state[:, 1:]
        return self.net(torch.cat([angle.sin(), angle.cos(), rest], 1)).squeeze(1)


def motion(n):
    angle = (torch.rand(n) * 2 - 1) * 3.1
    speed, friction = torch.randn(n), torch.rand(n) * 2 - 1
    acceleration = -torch.sin(angle) - (0.3 + 0.2 * friction) * speed * speed.abs()
    return torch.stack([angle, speed, friction], 1), acceleration + 0.02 * torch.randn(n)


state, acceleration = motion(2000)
state_val, acceleration_val = motion(600)
model = Pendulum()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
scheduler = CosineAnnealingWarmRestarts(optimizer, T_0=8)
for epoch in range(32):
    for rows in torch.randperm(2000).split(80):
        loss = nn.functional.mse_loss(model(state[rows]), acceleration[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()
    if epoch % 4 == 3:
        with torch.no_grad():
            val = nn.functional.mse_loss(model(state_val), acceleration_val).item()
        print(f"epoch {epoch + 1:2d} loss {loss.item():.5f} validation {val:.5f}")
