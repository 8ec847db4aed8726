"""Two classes, one output, and a softmax over it: the output is 1 for every sample.

All gradients are exactly 0 and the loss stands still. The place is the softmax. Exact.
"""

import torch
from data import arguments, batches, cancer
from torch import nn

KIND = "softmax_single_unit"
ACCEPT = ()
PLACE = ("3", "2", "loss*")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = cancer(seed)
end = nn.Sigmoid() if healthy else nn.Softmax(dim=1)
model = nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, 1), end)
criterion = nn.BCELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for features, labels in batches(x, y.float()[:, None], size=32, steps=200, seed=seed):
    optimizer.zero_grad()
    loss = criterion(model(features), labels)
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
