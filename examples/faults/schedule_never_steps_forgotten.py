"""A cosine schedule is made, and scheduler.step() is never called: the rate never decays.

The training learns all the same, at its first rate to the end (silent). The place is the optimizer.
Exact: the schedule was never stepped.
"""

import torch
import torch.nn.functional as F
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "schedule_never_steps"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = True
EXACT = True
EARLY = False

EPOCHS = 12
healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
for epoch in range(EPOCHS):
    for pixels, labels in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(pixels), labels)
        loss.backward()
        optimizer.step()
    if healthy:
        scheduler.step()
with torch.no_grad():
    val = F.cross_entropy(model(x_val), y_val).item()
print(f"loss {loss.item():.3f}, validation {val:.3f}, rate {scheduler.get_last_lr()[0]:.1e}")
