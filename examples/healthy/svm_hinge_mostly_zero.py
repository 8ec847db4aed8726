"""Tumours by a network with hinge loss: most rows are beyond the margin and give no gradient at
all.
"""

import torch
from data import arguments, batches, cancer
from torch import nn

ODD = (
    "the loss of most rows is exactly zero, and so is the gradient of whole batches "
    "late in training"
)

_, seed = arguments(__doc__)
x, y, x_val, y_val = cancer(seed)
sign, sign_val = 2 * y.float() - 1, 2 * y_val.float() - 1
model = nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-3)
for xb, sb in batches(x, sign, size=32, steps=260, seed=seed):
    loss = (1 - sb * model(xb).squeeze(1)).clamp(min=0).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    out = model(x_val).squeeze(1)
print(f"loss {loss.item():.3f} accuracy {(out * sign_val > 0).float().mean():.3f}")
