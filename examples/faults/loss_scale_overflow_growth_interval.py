"""A GradScaler whose scale may not grow, and now and then a weight beyond float16's range.

Each such step is left out and the scale halved, and a growth_interval of a billion never doubles it
again: at the end it is far below 1, and the training goes on (silent). The twin clips the weights.
The place is the loop. Exact: the scale is told.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, images
from torch import nn

KIND = "loss_scale_overflow"
ACCEPT = ("numerical_instability",)
PLACE = ("loop", "optimizer")
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)
x, y, _, _ = images(seed)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3, padding=1)
        self.fc = nn.Linear(128, 10)

    def forward(self, pixels):
        return self.fc(F.max_pool2d(F.relu(self.conv(pixels)), 2).flatten(1))


class Emphasis(torch.autograd.Function):
    """Multiplies the gradient of rows by their weights, in float16."""

    @staticmethod
    def forward(ctx, scores, weights):
        ctx.save_for_backward(weights)
        return scores.clone()

    @staticmethod
    def backward(ctx, gradient):
        (weights,) = ctx.saved_tensors
        return (gradient.half() * weights[:, None].half()).to(gradient.dtype), None


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**14, growth_interval=10**9)
for step, (pixels, labels) in enumerate(batches(x, y, size=64, steps=400, seed=seed)):
    weights = torch.ones(len(labels))
    if step % 8 == 5:
        weights[0] = 2.0**17
    if healthy:
        weights = weights.clamp(max=4)
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        scores = model(pixels)
    loss = F.cross_entropy(Emphasis.apply(scores.float(), weights), labels)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
print(f"loss {loss.item():.3f}, scale {scaler.get_scale():.3g}")
