"""House prices by a deep MLP whose weights start far too small (normal with deviation 0.001).

The signal shrinks by more than ten per layer, so that the output does not depend on the input and
the gradients of the first layers are next to nothing: the loss stays at the variance of the
target. The place is the model.
"""

import itertools

import torch
from data import arguments, batches, houses
from torch import nn

KIND = "poor_weight_init"
ACCEPT = ("vanishing_gradient",)
PLACE = ("body*", "")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = houses(seed)


class PriceModel(nn.Module):
    def __init__(self, width=48, depth=4):
        super().__init__()
        sizes = [6] + [width] * depth
        layers = []
        for fan_in, fan_out in itertools.pairwise(sizes):
            layers += [nn.Linear(fan_in, fan_out), nn.ReLU()]
        self.body = nn.Sequential(*layers)
        self.price = nn.Linear(width, 1)

    def forward(self, rows):
        return self.price(self.body(rows)).squeeze(1)


model = PriceModel()
for m in model.modules():
    if isinstance(m, nn.Linear):
        if healthy:
            nn.init.xavier_normal_(m.weight, gain=nn.init.calculate_gain("relu"))
        else:
            nn.init.normal_(m.weight, 0.0, 0.001)
        nn.init.zeros_(m.bias)

mse = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
for step, (rows, price) in enumerate(batches(x, y, size=64, steps=400, seed=seed)):
    optimizer.zero_grad()
    loss = mse(model(rows), price)
    loss.backward()
    optimizer.step()
    if step % 100 == 99:
        with torch.no_grad():
            val = mse(model(x_val), y_val).item()
print(f"train {loss.item():.3f}, validation {val:.3f}")
