"""Readings of machines are joined with what the mechanics found there.

Fault: the join is by the site, of which each has six machines, instead of the machine: each reading
is there six times, with the findings of all machines of its site. The twin joins by the machine.
The place is the loader. The loss falls a little, to what sites have in common.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "duplicated_rows"
ACCEPT = ("label_noise", "label_misalignment")
PLACE = ("loader", "input*")
SILENT = True
EXACT = False
EARLY = True

SITES, MACHINES, SENSORS, FINDINGS = 150, 6, 12, 4

healthy, seed = arguments(__doc__)
true = torch.randn(SENSORS, FINDINGS)


def plant(sites):
    """Readings (machines, sensors), the site of each, and what was found there."""
    site = torch.arange(sites).repeat_interleave(MACHINES)
    readings = torch.randn(sites * MACHINES, SENSORS) + 0.6 * torch.randn(sites, SENSORS)[site]
    found = (readings @ true + 0.5 * torch.randn(len(site), FINDINGS)).argmax(1)
    return readings, site, found


def join(left, right):
    """All pairs of rows whose keys are equal."""
    return (left[:, None] == right[None, :]).nonzero(as_tuple=True)


readings, site, found = plant(SITES)
key = torch.arange(len(site)) if healthy else site
reading, finding = join(key, key)
train = TensorDataset(readings[reading], found[finding])
x_val, _, y_val = plant(100)
model = nn.Sequential(nn.Linear(SENSORS, 64), nn.ReLU(), nn.Linear(64, FINDINGS))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(6 if healthy else 2):
    model.train()
    for x, y in DataLoader(train, batch_size=48, shuffle=True):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        scores = model(x_val)
        val_loss = F.cross_entropy(scores, y_val)
    accuracy = (scores.argmax(1) == y_val).float().mean()
    print(f"epoch {epoch}: loss {loss.item():.3f}, val {val_loss.item():.3f} ({accuracy:.3f})")
