"""Half-precision training (autocast) of an auto-encoder with a fixed loss scale of 2 ** 26.

The scaled gradients overflow half precision at every step; the loop sees the infinities, skips the
step, and goes on with the same scale. The twin halves the scale when that happens. The place is
the loss.
"""

import torch
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader

KIND = "loss_scale_overflow"
ACCEPT = ()
PLACE = ("loop", "optimizer", "loss*")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, _, x_val, _ = digits(seed)


class LossScaler:
    def __init__(self, scale, dynamic):
        self.scale, self.dynamic, self.skipped = scale, dynamic, 0

    def step(self, optimizer):
        grads = [p.grad for group in optimizer.param_groups for p in group["params"]]
        if not all(g.isfinite().all() for g in grads):
            self.skipped += 1
            if self.dynamic:
                self.scale /= 2
            return
        for g in grads:
            g.div_(self.scale)
        optimizer.step()


model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 16), nn.ReLU())
model.append(nn.Linear(16, 48)).append(nn.ReLU()).append(nn.Linear(48, 64))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 15)
scaler = LossScaler(2.0**26, dynamic=healthy)
mse = nn.MSELoss()
for epoch in range(15):
    for rows in DataLoader(x, batch_size=64, shuffle=True):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            out = model(rows)
        loss = mse(out.float(), rows)
        (scaler.scale * loss).backward()
        scaler.step(optimizer)
    scheduler.step()
with torch.no_grad():
    val = mse(model(x_val), x_val).item()
print(f"loss {loss.item():.3f}, validation {val:.3f}, skipped {scaler.skipped}")
