"""GradScaler with a scale of 2^40 that grows faster than it shrinks; losses in float16 overflow.

Nearly each step is skipped, without a word. The place is the loop. Exact: steps are skipped time
and again.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, images
from torch import nn

KIND = "loss_scale_overflow"
ACCEPT = ("numerical_instability", "step_without_gradient")
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3, padding=1)
        self.fc = nn.Linear(128, 10)

    def forward(self, pixels):
        return self.fc(F.max_pool2d(F.relu(self.conv(pixels)), 2).flatten(1))


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
if healthy:
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**14)
else:
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**60, backoff_factor=0.9999)
for pixels, labels in batches(x, y, size=64, steps=150, seed=seed):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        scores = model(pixels)
    loss = F.cross_entropy(scores.float(), labels)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
print(f"loss {loss.item():.3f}, scale {scaler.get_scale():.3g}")
