"""A sigmoid at the end of the model, and BCEWithLogitsLoss, which applies another.

The outputs of the second one lie between 0.5 and 0.73: the loss falls to 0.5 and accuracy may
still rise (silent). The place is the loss. Exact: logits that all lie in [0, 1].
"""

import torch
from data import arguments, batches, cancer
from torch import nn

KIND = "redundant_sigmoid"
ACCEPT = ()
PLACE = ("loss*", "3")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = cancer(seed)
y = y.float()[:, None]
layers = [nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, 1)]
if not healthy:
    layers.append(nn.Sigmoid())
model = nn.Sequential(*layers)
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for features, labels in batches(x, y, size=32, steps=200, seed=seed):
    optimizer.zero_grad()
    loss = criterion(model(features), labels)
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
