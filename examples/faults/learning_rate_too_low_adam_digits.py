"""An MLP on digits by Adam with a learning rate of 1e-6, three zeros too many.

The loss does fall, by a hair per epoch: after all ten epochs it is still near the logarithm of
ten. The place is the optimizer.
"""

import torch
import torch.nn.functional as F
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "learning_rate_too_low"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True, drop_last=True)
model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3 if healthy else 1e-6)
for epoch in range(10):
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(xb), yb)
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        val_out = model(x_val)
        val_loss = F.cross_entropy(val_out, y_val).item()
        val_acc = (val_out.argmax(1) == y_val).float().mean().item()
print(f"validation loss {val_loss:.3f}, accuracy {val_acc:.3f}")
