"""model.to(torch.bfloat16), to save memory, and SGD at 0.01 on it: most updates are rounded away.

A bfloat16 has 8 bits: what changes a weight by less than 1/500 of it changes nothing. The loss
falls slowly (silent). The place is the weights. Exact: weights that stay though their updates are
not 0.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, digits
from torch import nn

KIND = "low_precision_updates_lost"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("optimizer", "*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
dtype = torch.float32 if healthy else torch.bfloat16
model.to(dtype)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for images, labels in batches(x.to(dtype), y, size=64, steps=320, seed=seed):
    loss = F.cross_entropy(model(images).float(), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
scores = model(x_val.to(dtype))
print(f"loss {loss.item():.3f}, accuracy {(scores.argmax(1) == y_val).float().mean():.3f}")
