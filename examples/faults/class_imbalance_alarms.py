"""Three states of a machine; the two that matter are 2 % and 1 % of the rows, and no weight is
given.

The loss falls to the entropy of the counts (silent), every prediction is "normal". The place is
the loader. The twin gives weights to cross_entropy.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches
from torch import nn

KIND = "class_imbalance"
ACCEPT = ()
PLACE = ("loader",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
n = 4000
y = torch.where(torch.rand(n) < 0.03, torch.where(torch.rand(n) < 0.33, 2, 1), 0)
centre = 0.55 * torch.randn(3, 12)
x = torch.randn(n, 12) + centre[y]
weight = torch.tensor([1.0, 45.0, 90.0]) / 30 if healthy else None


class Monitor(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(12, 24)
        self.fc2 = nn.Linear(24, 3)

    def forward(self, sensors):
        return self.fc2(F.leaky_relu(self.fc1(sensors)))


model = Monitor()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for sensors, state in batches(x, y, size=64, steps=250, seed=seed):
    loss = F.cross_entropy(model(sensors), state, weight=weight)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
rare = y > 0
found = model(x).argmax(1)
print(f"loss {loss.item():.3f}, rare found {(found[rare] == y[rare]).float().mean():.3f}")
