"""Risk of frost in orchards by a deep tower of sigmoid layers.

"Deeper is better", and the sigmoid is what the textbook of that course draws in each neuron. Each
layer takes three quarters or more of the gradient away; after eight of them nothing is left for
the first ones, and the network gives out the mean for a long time.
The place is the first layers of the tower.
The twin uses ReLU with the initial weights that suit it.
"""

import torch
from data import arguments
from torch import nn

KIND = "vanishing_gradient"
ACCEPT = ("saturated_activation",)
PLACE = ("tower", "tower.0", "tower.2", "tower.4")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def orchard_nights(n, g):
    x = torch.randn(n, 9, generator=g)
    cold = 1.3 * x[:, 0] - x[:, 1] * torch.sigmoid(2 * x[:, 2]) + 0.7 * x[:, 3] * x[:, 4]
    return x, (cold + 0.3 * torch.randn(n, generator=g) > 0).float()


class FrostTower(nn.Module):
    def __init__(self, width=40, depth=8):
        super().__init__()
        layers, inputs = [], 9
        for _ in range(depth):
            layer = nn.Linear(inputs, width)
            if healthy:
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
                nn.init.zeros_(layer.bias)
            layers += [layer, nn.ReLU() if healthy else nn.Sigmoid()]
            inputs = width
        self.tower = nn.Sequential(*layers)
        self.risk = nn.Linear(width, 1)

    def forward(self, x):
        return self.risk(self.tower(x)).squeeze(-1)


def evaluate(model, x, y):
    with torch.no_grad():
        logits = model(x)
    loss = nn.functional.binary_cross_entropy_with_logits(logits, y).item()
    return loss, ((logits > 0) == (y > 0.5)).float().mean().item()


g = torch.Generator().manual_seed(seed)
x, y = orchard_nights(2000, g)
x_val, y_val = orchard_nights(500, g)
model = FrostTower()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
step = 0
while step < 500:
    for rows in torch.randperm(len(x)).split(40):
        loss = nn.functional.binary_cross_entropy_with_logits(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % 100 == 0:
            val, acc = evaluate(model, x_val, y_val)
            print(f"step {step}: train {loss.item():.4f} val {val:.4f} acc {acc:.3f}")
