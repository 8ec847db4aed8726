"""The head is replaced after the optimizer was made, so that the optimizer steps the old one.

The place is the new head, `head`. The body still learns around the random head: the loss falls
(silent). Exact: a parameter that has a gradient belongs to no optimizer.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, images
from torch import nn

KIND = "parameters_not_in_optimizer"
ACCEPT = ()
PLACE = ("head", "optimizer")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.head = nn.Linear(8 * 16, classes)

    def forward(self, pixels):
        maps = F.max_pool2d(F.relu(self.norm(self.conv(pixels))), 2)
        return self.head(maps.flatten(1))


model = Net(classes=1000)
if healthy:
    model.head = nn.Linear(8 * 16, 10)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
if not healthy:
    model.head = nn.Linear(8 * 16, 10)

for pixels, labels in batches(x, y, size=64, steps=200, seed=seed):
    loss = F.cross_entropy(model(pixels), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
model.eval()
print(f"loss {loss.item():.3f}, accuracy {(model(x_val).argmax(1) == y_val).float().mean():.3f}")
