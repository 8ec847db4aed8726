"""torch.tensor(loss, requires_grad=True) "repairs" a RuntimeError: the graph ends there.

backward() runs and no parameter gets a gradient. The place is the loss. Exact.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, digits
from torch import nn

KIND = "detached_loss"
ACCEPT = ()
PLACE = ("loss*", "loop")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for images, labels in batches(x, y, size=64, steps=200, seed=seed):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(images), labels)
    if not healthy:
        loss = torch.tensor(loss.item(), requires_grad=True)
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}, accuracy {(model(x_val).argmax(1) == y_val).float().mean():.3f}")
