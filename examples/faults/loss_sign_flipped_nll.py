"""The mean log-probability of the right class is minimised: the minus sign is missing.

The loss falls to minus infinity while accuracy falls to 0. The place is the loss.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, wine
from torch import nn

KIND = "loss_sign_flipped"
ACCEPT = ()
PLACE = ("loss*", "")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = wine(seed)
model = nn.Sequential(nn.Linear(13, 24), nn.ReLU(), nn.Linear(24, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for features, labels in batches(x, y, size=24, steps=200, seed=seed):
    log_probability = F.log_softmax(model(features), dim=1)
    loss = log_probability.gather(1, labels[:, None]).mean()
    if healthy:
        loss = -loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}, accuracy {(model(x_val).argmax(1) == y_val).float().mean():.3f}")
