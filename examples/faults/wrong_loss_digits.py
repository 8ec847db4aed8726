"""Ten classes by squared error on the class number: a 7 is thought to be nearer to an 8 than to a
1.

The loss falls, accuracy stays low (silent). The place is the loss: its targets are whole numbers
of few values.
"""

import torch
from data import arguments, batches, digits
from torch import nn

KIND = "wrong_loss"
ACCEPT = ()
PLACE = ("loss*",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10 if healthy else 1))
criterion = nn.CrossEntropyLoss() if healthy else nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for images, labels in batches(x, y, size=64, steps=200, seed=seed):
    optimizer.zero_grad()
    scores = model(images)
    loss = criterion(scores, labels) if healthy else criterion(scores[:, 0], labels.float())
    loss.backward()
    optimizer.step()
with torch.no_grad():
    scores = model(x_val)
found = scores.argmax(1) if healthy else scores[:, 0].round().long()
print(f"loss {loss.item():.3f}, accuracy {(found == y_val).float().mean():.3f}")
