"""The illness is measured from 25 to 346 and the network starts at 0; absolute error, Adam at
1e-3.

The loss falls from 150 to 68 as the output creeps up (silent): it gets to the mean, and nothing
else is learned. The place is the targets.
"""

import torch
import torch.nn.functional as F
from data import arguments, diabetes
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "target_not_normalized"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("loss*", "target*", "out")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = diabetes(seed, raw_target=not healthy)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(10, 20)
        self.out = nn.Linear(20, 1)

    def forward(self, features):
        return self.out(torch.tanh(self.hidden(features))).squeeze(-1)


model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(25):
    for features, target in DataLoader(TensorDataset(x, y), batch_size=33, shuffle=True):
        optimizer.zero_grad()
        loss = F.l1_loss(model(features), target)
        loss.backward()
        optimizer.step()
print(f"loss {loss.item():.3f}, deviation {y.std():.3f}")
