"""optimizer.zero_grad() stands before the loop over epochs, not in the loop over batches.

The place is the loop. With Adam the sum of all gradients acts like a huge momentum: the loss still
falls, in swings (silent). Exact: gradients are there when backward begins.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, waves
from torch import nn

KIND = "gradients_not_cleared"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y = waves(seed)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(1, 24, batch_first=True)
        self.head = nn.Linear(24, 3)

    def forward(self, series):
        _, last = self.gru(series)
        return self.head(last[0])


model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
optimizer.zero_grad()
for series, shape in batches(x, y, size=40, steps=150, seed=seed):
    if healthy:
        optimizer.zero_grad()
    loss = F.cross_entropy(model(series), shape)
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
