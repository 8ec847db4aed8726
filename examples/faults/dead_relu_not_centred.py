"""Inputs are scaled to [-1, 0] by a slip of sign, and weights drawn from 0 upwards: sums are
negative.

Most units of both layers are 0 for all houses. The place is the ReLU layers.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, houses
from torch import nn

KIND = "dead_relu"
ACCEPT = ("poor_weight_init", "dying_relu")
PLACE = ("relu?", "fc?", "")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = houses(seed, raw=True)
low, high = x.min(0).values, x.max(0).values
x = (x - low) / (high - low) if healthy else (low - x) / (high - low)


class Net(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.fc1 = nn.Linear(6, width)
        self.relu1 = nn.ReLU()
        self.fc2 = nn.Linear(width, width)
        self.relu2 = nn.ReLU()
        self.fc3 = nn.Linear(width, 1)
        if not healthy:
            nn.init.uniform_(self.fc1.weight, 0, 0.5)
            nn.init.zeros_(self.fc1.bias)

    def forward(self, features):
        h = self.relu1(self.fc1(features))
        return self.fc3(self.relu2(self.fc2(h))).squeeze(1)


model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for features, price in batches(x, y, size=64, steps=320, seed=seed):
    loss = F.mse_loss(model(features), price)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
