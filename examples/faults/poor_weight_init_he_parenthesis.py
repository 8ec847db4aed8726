"""A deep net for the drag of a body; the hand-written He initialisation says sqrt(2) / fan_in for
sqrt(2 / fan_in).

Every layer makes the signal about seven times smaller, so after nine of them nothing of the input
is left. The loss stays at that of the mean for long. The place is the weights of the hidden layers.
"""

import itertools
import math

import torch
from data import arguments, batches, standardise
from torch import nn

KIND = "poor_weight_init"
ACCEPT = ("vanishing_gradient",)
PLACE = ("layers*", "")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


class DeepNet(nn.Module):
    def __init__(self, inputs, width=50, depth=9):
        super().__init__()
        sizes = [inputs] + [width] * depth
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(sizes))
        self.out = nn.Linear(width, 1)
        self.reset()

    def reset(self):
        for layer in self.layers:
            fan_in = layer.in_features
            std = math.sqrt(2 / fan_in) if healthy else math.sqrt(2) / fan_in
            nn.init.normal_(layer.weight, 0.0, std)
            nn.init.zeros_(layer.bias)

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.out(x).squeeze(1)


def bodies(n):
    """Speed, size, angle of attack, roughness, density; the logarithm of the drag."""
    speed = 5 + 45 * torch.rand(n)
    size = 0.1 + torch.rand(n)
    angle = (torch.rand(n) - 0.5) * 1.2
    rough = torch.rand(n)
    rho = 0.9 + 0.4 * torch.rand(n)
    coefficient = 0.3 + 1.4 * angle**2 + 0.3 * rough * torch.sigmoid((speed - 25) / 3)
    drag = 0.5 * rho * speed**2 * size**2 * coefficient
    return torch.stack([speed, size, angle, rough, rho], 1), drag.log() + 0.05 * torch.randn(n)


x, y = bodies(3000)
x, x_val = standardise(x[:2400], x[2400:])
y, y_val = standardise(y[:2400], y[2400:])
model = DeepNet(5)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
running = None
for step, (xb, yb) in enumerate(batches(x, y, size=64, steps=500, seed=seed)):
    loss = nn.functional.mse_loss(model(xb), yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    running = loss.item() if running is None else 0.98 * running + 0.02 * loss.item()
    if step % 100 == 99:
        model.eval()
        with torch.no_grad():
            r2 = 1 - (model(x_val) - y_val).pow(2).mean() / y_val.var()
        model.train()
        print(f"step {step + 1} loss {running:.3f} R2 {r2:.3f}")
