"""A CNN whose head is replaced for ten classes after the optimizer was made.

The optimizer still holds the old head's parameters; the new head gets gradients but is never
stepped, only the convolutions bend themselves to it.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, images
from torch import nn

KIND = "parameters_not_in_optimizer"
ACCEPT = ()
PLACE = ("head*",)
SILENT = True
EXACT = True
EARLY = True


class Backbone(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.head = nn.Linear(256, classes)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.head(x.flatten(1))


healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
model = Backbone(classes=100)
if healthy:
    model.head = nn.Linear(256, 10)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
if not healthy:
    model.head = nn.Linear(256, 10)

for img, lab in batches(x, y, size=64, steps=160, seed=seed):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(img), lab)
    loss.backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    acc = (model(x_val).argmax(1) == y_val).float().mean()
print(f"loss {loss.item():.3f}, validation accuracy {acc:.3f}")
