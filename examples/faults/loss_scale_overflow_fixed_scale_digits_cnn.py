"""A CNN on the digits in float16 autocast with a loss scale by hand that is far too large.

The loss is multiplied by 2**24 and the gradients are divided by it again. In float16 they overflow
to inf on the way, each step is skipped, as it should be, but the scale is never lowered. The place
is the loss's scale in the loop. The twin halves the scale whenever a step is skipped.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, images
from torch import nn

KIND = "loss_scale_overflow"
ACCEPT = ("optimizer_never_steps",)
PLACE = ("loss*", "loop")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
model = nn.Sequential(
    nn.Conv2d(1, 16, 3),
    nn.ReLU(),
    nn.Conv2d(16, 16, 3, stride=2),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(64, 32),
    nn.ReLU(),
    nn.Linear(32, 10),
)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
scale, skipped = 2.0**24, 0

for step, (xb, yb) in enumerate(batches(x, y, size=64, steps=300, seed=seed), 1):
    model.train()
    with torch.autocast("cpu", dtype=torch.float16):
        logits = model(xb)
    loss = F.cross_entropy(logits.float(), yb)
    optimizer.zero_grad()
    (loss * scale).backward()
    finite = all(p.grad.isfinite().all() for p in model.parameters())
    if finite:
        for p in model.parameters():
            p.grad /= scale
        optimizer.step()
    else:
        skipped += 1
        if healthy:
            scale /= 2
    if step % 30 == 0:
        model.eval()
        with torch.no_grad():
            accuracy = (model(x_val).argmax(1) == y_val).float().mean().item()
        print(
            f"step {step}: loss {loss.item():.3f}  val accuracy {accuracy:.3f}  skipped {skipped}"
        )
