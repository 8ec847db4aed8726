"""A context branch is to be faded in from step 40 on; its gate is a number that open_gate() sets on
the wrong object, so that the branch is multiplied by 0 for good.

The rest learns (silent). The place is the branch. No threshold but how long it lasts.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, waves
from torch import nn

KIND = "detached_graph"
ACCEPT = ()
PLACE = ("context*",)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y = waves(seed)
x, y, x_val, y_val = x[:600], y[:600], x[600:], y[600:]
classes = int(y.max()) + 1


class Waves(nn.Module):
    def __init__(self):
        super().__init__()
        self.near = nn.Conv1d(1, 16, 1)
        self.context = nn.Sequential(nn.Conv1d(16, 16, 15, padding=7), nn.ReLU())
        self.head = nn.Linear(16, classes)
        self.gate = 0.0

    def forward(self, series):
        h = F.relu(self.near(series.reshape(len(series), 1, -1)))
        h = h + self.gate * self.context(h)
        return self.head(h.amax(2))


def open_gate(part, step):
    part.gate = min(1.0, max(0.0, (step - 40) / 40))


model = Waves()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
for step, (series, labels) in enumerate(batches(x, y, size=32, steps=300, seed=seed)):
    open_gate(model if healthy else model.context, step)
    optimizer.zero_grad()
    loss = F.cross_entropy(model(series), labels)
    loss.backward()
    optimizer.step()
with torch.no_grad():
    hits = (model(x_val).argmax(1) == y_val).float().mean()
print(f"loss {loss.item():.3f}, accuracy {hits:.3f}")
