"""Weld inspection, rare defects: every layer got the negative start bias meant for the last one.

The trick of starting the last layer at the log-odds of a rare class was put into a function that
goes over all layers of the network. The hidden units start far below zero, the ReLUs let nothing
through, and only the last bias can learn.
The place is the hidden layers. The twin gives the bias to the last layer alone.
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "dead_relu"
ACCEPT = ("poor_weight_init", "vanishing_gradient")
PLACE = (
    "features.0",
    "features.2",
    "features.4",
    "features.1",
    "features.3",
    "features.5",
    "features",
)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


class WeldNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(12, 24, 3, padding=1, stride=2),
            nn.ReLU(),
            nn.Conv2d(24, 24, 3, padding=1, stride=2),
            nn.ReLU(),
        )
        self.classifier = nn.Linear(24, 1)

    def forward(self, x):
        return self.classifier(self.features(x).amax((2, 3))).squeeze(1)


def set_prior(layers, prior):
    for layer in layers:
        if isinstance(layer, (nn.Conv2d, nn.Linear)):
            nn.init.constant_(layer.bias, -math.log((1 - prior) / prior))


def welds(n):
    """Grey patches of 12 by 12 with, in one of five, a short bright crack."""
    images = torch.randn(n, 1, 12, 12) * 0.7
    defect = torch.rand(n) < 0.2
    for i in defect.nonzero().flatten().tolist():
        r, c = torch.randint(0, 8, (2,)).tolist()
        for k in range(4):
            images[i, 0, r + k, c + k] += 2.5
    return images, defect.float()


x, y = welds(1600)
x_val, y_val = welds(600)
net = WeldNet()
set_prior([net.classifier] if healthy else net.modules(), prior=0.02)
loss_fn = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)

for epoch in range(12):
    order = torch.randperm(len(x))
    for rows in order.split(50):
        loss = loss_fn(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 2 == 1:
        with torch.no_grad():
            logits = net(x_val)
            found = (logits[y_val > 0.5] > 0).float().mean().item()
            print(
                f"epoch {epoch + 1}: loss {loss.item():.3f}, validation "
                f"{loss_fn(logits, y_val).item():.3f}, found {found:.2f}"
            )
