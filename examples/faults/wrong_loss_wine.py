"""Three kinds of wine by an absolute error on the class number, in a loop that counts hits by
rounding.

The loss falls (silent). The place is the loss: targets 0, 1, 2 are classes, not amounts.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, wine
from torch import nn

KIND = "wrong_loss"
ACCEPT = ()
PLACE = ("loss*",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = wine(seed)


class Net(nn.Module):
    def __init__(self, outputs):
        super().__init__()
        self.fc1 = nn.Linear(13, 32)
        self.fc2 = nn.Linear(32, outputs)

    def forward(self, features):
        return self.fc2(torch.tanh(self.fc1(features)))


model = Net(3 if healthy else 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for features, labels in batches(x, y, size=16, steps=220, seed=seed):
    optimizer.zero_grad()
    if healthy:
        loss = F.cross_entropy(model(features), labels)
    else:
        loss = F.l1_loss(model(features), labels.view(-1, 1).float())
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
