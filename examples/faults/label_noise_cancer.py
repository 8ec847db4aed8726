"""A third of the labels of the training part are flipped: a column was entered by hand.

The loss falls some way (silent), validation gets worse from early on. The place is the loader.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, cancer
from torch import nn

KIND = "label_noise"
ACCEPT = ("label_misalignment", "overfit")
PLACE = ("loader", "loss*")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = cancer(seed)
y, y_val = y.float(), y_val.float()
if not healthy:
    y = torch.where(torch.rand(len(y)) < 0.33, 1 - y, y)

model = nn.Sequential(nn.Linear(30, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step, (features, labels) in enumerate(batches(x, y, size=32, steps=360, seed=seed)):
    model.train()
    loss = F.binary_cross_entropy_with_logits(model(features)[:, 0], labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 24 == 23:
        model.eval()
        with torch.no_grad():
            scores = model(x_val)[:, 0]
            val_loss = F.binary_cross_entropy_with_logits(scores, y_val)
accuracy = ((scores > 0) == (y_val > 0)).float().mean()
print(f"loss {loss.item():.3f}, validation {val_loss:.3f}, accuracy {accuracy:.3f}")
