"""A training is continued from a checkpoint that has the model only: Adam begins anew.

Its moments are gone and its first steps are full ones again, so that the loss jumps. The place is
the optimizer. Exact: its count of steps begins at 0 with weights that have been trained.
"""

import io

import torch
from data import arguments, batches, digits
from torch import nn

KIND = "resume_lost_optimizer_state"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
criterion = nn.CrossEntropyLoss()


def train(optimizer, seed):
    for images, labels in batches(x, y, size=64, steps=120, seed=seed):
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
    return loss.item()


optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
train(optimizer, seed)
file = io.BytesIO()
torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)

file.seek(0)
checkpoint = torch.load(file)
model.load_state_dict(checkpoint["model"])
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
if healthy:
    optimizer.load_state_dict(checkpoint["optimizer"])
loss = train(optimizer, seed + 1)
print(f"loss {loss:.3f}, accuracy {(model(x_val).argmax(1) == y_val).float().mean():.3f}")
