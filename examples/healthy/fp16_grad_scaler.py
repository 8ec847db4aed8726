"""float16 under autocast with GradScaler, whose scale is found in the first steps."""

import torch
import torch.nn.functional as F
from data import arguments, batches, digits
from torch import nn

ODD = "the first steps are skipped because gradients overflow; scaled losses"

_, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**24, growth_interval=100)
for images, labels in batches(x, y, size=64, steps=250, seed=seed):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        scores = model(images)
        loss = F.cross_entropy(scores, labels)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    scaler.step(optimizer)
    scaler.update()
print(f"loss {loss.item():.3f}, scale {scaler.get_scale():.3g}")
