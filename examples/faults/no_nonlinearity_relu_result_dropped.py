"""A model of a pendulum's dynamics for control: `F.relu(h)` stands on a line of its own, its
result goes nowhere.

Three linear layers are one linear map; the pendulum is not linear. The loss falls to that of a
linear model. The place is the layers of the net.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "no_nonlinearity"
ACCEPT = ("low_capacity",)
PLACE = ("fc*", "")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
g = torch.Generator().manual_seed(510 + seed)
DT = 0.3


def transitions(n):
    """(angle as cos and sin, speed, torque) -> change of speed and of angle; with friction."""
    angle = torch.empty(n).uniform_(-3.1416, 3.1416, generator=g)
    speed = torch.empty(n).uniform_(-5, 5, generator=g)
    torque = torch.empty(n).uniform_(-2, 2, generator=g)
    a, v = angle.clone(), speed.clone()
    for _ in range(20):
        v = v + DT / 20 * (15 * a.sin() + 3 * torque.tanh() * (1 + a.cos()) - 0.15 * v * v.abs())
        a = a + DT / 20 * v
    state = torch.stack([angle.cos(), angle.sin(), speed, torque], 1)
    change = torch.stack([v - speed, a - angle - DT * speed], 1)
    return state, change + 0.02 * torch.randn(n, 2, generator=g) * torch.tensor([1.0, 0.05])


class Dynamics(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.fc1 = nn.Linear(4, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.fc3 = nn.Linear(hidden, 2)

    def forward(self, x):
        if healthy:
            h = self.fc1(x)
            h = F.relu(h)
            h = self.fc2(h)
            h = F.relu(h)
        else:
            h = self.fc1(x)
            F.relu(h)
            h = self.fc2(h)
            F.relu(h)
        return self.fc3(h)


(x, y), (x_val, y_val) = transitions(2500), transitions(500)
stats = x.mean(0), x.std(0), y.mean(0), y.std(0)
x, x_val = ((part - stats[0]) / stats[1] for part in (x, x_val))
y, y_val = ((part - stats[2]) / stats[3] for part in (y, y_val))

model = Dynamics()
optim = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(16):
    losses = []
    for idx in torch.randperm(len(x)).split(64):
        loss = F.mse_loss(model(x[idx]), y[idx])
        optim.zero_grad(set_to_none=True)
        loss.backward()
        optim.step()
        losses.append(loss.detach())
    with torch.no_grad():
        val = F.mse_loss(model(x_val), y_val)
    if epoch % 3 == 0:
        print(f"epoch {epoch:2d}  train {torch.stack(losses).mean():.4f}  val {val:.4f}")
