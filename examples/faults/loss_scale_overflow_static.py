"""Mixed precision by hand: the loss is scaled by 2^24, float16 gradients overflow, steps are
skipped.

"if not finite: skip the step" hides it: no step is ever made. The place is the loop. Exact:
gradients are infinite at every step.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, digits
from torch import nn

KIND = "loss_scale_overflow"
ACCEPT = ("numerical_instability", "step_without_gradient")
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10)).half()
master = [p.detach().clone().float() for p in model.parameters()]
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scale = 2.0**8 if healthy else 2.0**24
skipped = 0
for images, labels in batches(x.half(), y, size=64, steps=200, seed=seed):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(images).float(), labels)
    (loss * scale).backward()
    finite = all(p.grad.isfinite().all() for p in model.parameters())
    if not finite:
        skipped += 1
        continue
    for p in model.parameters():
        p.grad.div_(scale)
    optimizer.step()
print(f"loss {loss.item():.3f}, {skipped} steps skipped")
