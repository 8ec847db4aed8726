"""Features are divided by their norm without an epsilon; sometimes all ReLU units of a sample are off.

0 / 0 is NaN in one sample, in the loss, and in all weights. The place is the module that normalises. Exact:
it is the first that is not finite.
"""

KIND = "division_by_zero_norm"
ACCEPT = ("numerical_instability",)
PLACE = ("unit*", "body*", "")
SILENT = False
EXACT = True
EARLY = False

import torch
import torch.nn.functional as F
from data import arguments, batches, digits
from torch import nn

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)


class UnitLength(nn.Module):
    def forward(self, h):
        return h / (h.norm(dim=1, keepdim=True) + (1e-6 if healthy else 0))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 4), nn.ReLU())
        self.unit = UnitLength()
        self.head = nn.Linear(4, 10)

    def forward(self, pixels):
        return self.head(4 * self.unit(self.body(pixels)))


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for images, labels in batches(x, y, size=32, steps=250, seed=seed):
    loss = F.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
