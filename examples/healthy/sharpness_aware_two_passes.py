"""A CNN for digits trained by sharpness-aware minimisation, in two passes per batch, with four
averaged micro-batches in each.

It looks odd as there are eight backward passes for each step, the weights are moved by hand and
moved back, and the gradients of four micro-batches add up (each loss is divided by four): all of
it is as the method asks, and the gradients are cleared in between.
"""

import torch
from data import arguments, batches, images
from torch import nn

ODD = (
    "A CNN for digits trained by sharpness-aware minimisation, in two passes per batch, with "
    "four averaged micro-batches in each"
)
_, seed = arguments(__doc__)

PARTS, RADIUS = 4, 0.05


def add_up(model, x, y):
    """Leaves the gradient of the mean loss over all micro-batches, and returns this loss."""
    total = 0.0
    for xb, yb in zip(x.chunk(PARTS), y.chunk(PARTS), strict=False):
        loss = nn.functional.cross_entropy(model(xb), yb, label_smoothing=0.05) / PARTS
        loss.backward()
        total += loss.item()
    return total


@torch.no_grad()
def climb(parameters):
    norm = torch.stack([p.grad.norm() for p in parameters]).norm() + 1e-12
    steps = [p.grad * (RADIUS / norm) for p in parameters]
    for p, e in zip(parameters, steps, strict=False):
        p.add_(e)
    return steps


@torch.no_grad()
def climb_back(parameters, steps):
    for p, e in zip(parameters, steps, strict=False):
        p.sub_(e)


x, y, x_val, y_val = images(seed)
model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.GroupNorm(4, 16),
    nn.ReLU(),
    nn.Conv2d(16, 32, 3, padding=1, stride=2),
    nn.GroupNorm(4, 32),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(512, 10),
)
parameters = list(model.parameters())
optimizer = torch.optim.SGD(parameters, lr=0.05, momentum=0.9, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 200)

for step, (xb, yb) in enumerate(batches(x, y, size=64, steps=200, seed=seed)):
    optimizer.zero_grad()
    loss = add_up(model, xb, yb)
    steps = climb(parameters)
    optimizer.zero_grad()
    add_up(model, xb, yb)
    climb_back(parameters, steps)
    optimizer.step()
    scheduler.step()
    if step % 25 == 24:
        model.eval()
        with torch.no_grad():
            scores = model(x_val)
        model.train()
        val = nn.functional.cross_entropy(scores, y_val).item()
        accuracy = (scores.argmax(1) == y_val).float().mean().item()
        print(f"step {step + 1} loss {loss:.3f} validation loss {val:.3f} accuracy {accuracy:.3f}")
