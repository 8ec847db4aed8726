"""A regression MLP with batch norm is trained with batches of two rows.

Normalised over two rows every unit becomes plus or minus one: only the order of the two is left of
it, so training can't fit, and in evaluation the running statistics give quite other values. The
twin has batches of 64. The place is `bn1`, `bn2` or the loader.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, houses
from torch import nn

KIND = "batchnorm_momentum"
ACCEPT = ()
PLACE = ("bn1", "bn2", "loader")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
batch_size = 64 if healthy else 2


class PriceNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(6, 48)
        self.bn1 = nn.BatchNorm1d(48)
        self.fc2 = nn.Linear(48, 24)
        self.bn2 = nn.BatchNorm1d(24)
        self.out = nn.Linear(24, 1)

    def forward(self, x):
        x = F.relu(self.bn1(self.fc1(x)))
        x = F.relu(self.bn2(self.fc2(x)))
        return self.out(x).squeeze(1)


x, y, x_val, y_val = houses(seed, n=6000)
model = PriceNet()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
steps = 1000
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
running = 0.0
for step, (xb, yb) in enumerate(batches(x, y, size=batch_size, steps=steps, seed=seed), 1):
    model.train()
    loss = F.mse_loss(model(xb), yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    running += loss.item()
    if step % 200 == 0:
        model.eval()
        with torch.no_grad():
            val = F.mse_loss(model(x_val), y_val).item()
        print(f"step {step}: mse {running / 200:.4f}, val mse {val:.4f}")
        running = 0.0
