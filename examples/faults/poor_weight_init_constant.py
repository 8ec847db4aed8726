"""Every weight starts at 0.1 ("a small number"): all units of a layer are the same for ever.

The place is the hidden layers. The loss falls a little, then stays far above what the network
could reach. Exact: the rows of the weights are equal.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, digits
from torch import nn

KIND = "poor_weight_init"
ACCEPT = ()
PLACE = ("0", "2", "4")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)


def init(module):
    if isinstance(module, nn.Linear):
        if healthy:
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
        else:
            nn.init.constant_(module.weight, 0.1)
        nn.init.zeros_(module.bias)


model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 10))
model.apply(init)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for images, labels in batches(x, y, size=64, steps=250, seed=seed):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}, accuracy {(model(x_val).argmax(1) == y_val).float().mean():.3f}")
