"""An exponential schedule meant for epochs whose step() is inside the loop over batches.

The rate falls by a tenth with every batch, to a millionth within 4 epochs. The loss has fallen a
little before, and stays there. The place is the optimizer.
"""

import torch
from data import arguments, houses
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "schedule_collapsed"
ACCEPT = ()
PLACE = ("optimizer", "loop")
SILENT = True
EXACT = True
EARLY = True

EPOCHS = 15

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = houses(seed, n=2400)
loader = DataLoader(TensorDataset(x, y.unsqueeze(1)), batch_size=64, shuffle=True)
model = nn.Sequential(
    nn.Linear(6, 64),
    nn.SiLU(),
    nn.Linear(64, 32),
    nn.SiLU(),
    nn.Linear(32, 1),
)
criterion = nn.SmoothL1Loss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
for epoch in range(EPOCHS):
    model.train()
    total = 0.0
    for features, price in loader:
        optimizer.zero_grad()
        loss = criterion(model(features), price)
        loss.backward()
        optimizer.step()
        if not healthy:
            scheduler.step()
        total += loss.item()
    if healthy:
        scheduler.step()
    model.eval()
    with torch.no_grad():
        val_loss = criterion(model(x_val), y_val.unsqueeze(1)).item()
rate = scheduler.get_last_lr()[0]
print(f"loss {total / len(loader):.3f}, validation {val_loss:.3f}, rate {rate:.1e}")
