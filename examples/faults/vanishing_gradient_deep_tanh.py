"""Twelve tanh layers whose weights start at std 0.02, the value for transformers of another width.

Each layer shrinks what goes through it, in both directions. The loss stays at guessing. The place
is the first layers.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, houses
from torch import nn

KIND = "vanishing_gradient"
ACCEPT = ("poor_weight_init",)
PLACE = ("layers.*", "")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = houses(seed)


class Deep(nn.Module):
    def __init__(self, depth=12, width=32):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(6 if i == 0 else width, width) for i in range(depth))
        self.out = nn.Linear(width, 1)
        for layer in self.layers:
            if healthy:
                nn.init.xavier_normal_(layer.weight)
            else:
                nn.init.normal_(layer.weight, std=0.02)
            nn.init.zeros_(layer.bias)

    def forward(self, h):
        for layer in self.layers:
            h = torch.tanh(layer(h))
        return self.out(h).squeeze(1)


model = Deep()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
for features, price in batches(x, y, size=64, steps=320, seed=seed):
    loss = F.mse_loss(model(features), price)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
