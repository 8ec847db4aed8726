"""All weights by uniform_(-0.001, 0.001) in a network of five ReLU layers.

What goes through shrinks a hundred-fold per layer, so that only the output's bias learns. The loss
stays at guessing. The place is the layers.
"""

from itertools import pairwise

import torch
import torch.nn.functional as F
from data import arguments, cancer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "poor_weight_init"
ACCEPT = ("vanishing_gradient",)
PLACE = ("fcs.*", "out", "")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = cancer(seed)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        sizes = [30, 32, 32, 32, 32]
        self.fcs = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(sizes))
        self.out = nn.Linear(32, 2)
        if not healthy:
            for parameter in self.parameters():
                nn.init.uniform_(parameter, -0.001, 0.001)

    def forward(self, h):
        for fc in self.fcs:
            h = F.relu(fc(h))
        return self.out(h)


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
for epoch in range(25):
    for features, labels in DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(features), labels)
        loss.backward()
        optimizer.step()
print(f"loss {loss.item():.3f}")
