"""Reads the digits on meter photographs; the weight decay is far too strong for this optimizer.

The recipe came from a paper that trains a vision transformer by AdamW with weight decay 0.3.
Here it went into `Adam`, where the decay is added to the gradient as an L2 penalty: it is larger
than what the data say, and the weights are pulled to almost nothing.
The place is the optimizer (its weight_decay).
The twin uses a weight decay of 1e-4.
"""

import torch
from data import arguments, batches, images
from torch import nn

KIND = "over_regularized"
ACCEPT = ("bad_optimizer_settings",)
PLACE = ("optimizer", "loss*")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
WEIGHT_DECAY = 1e-4 if healthy else 0.3

x, y, x_val, y_val = images(seed)


def block(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))


model = nn.Sequential(block(1, 16), block(16, 32), nn.Flatten(), nn.Linear(128, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=WEIGHT_DECAY)
loss_fn = nn.CrossEntropyLoss()


def accuracy(inputs, labels):
    model.eval()
    with torch.no_grad():
        right = (model(inputs).argmax(1) == labels).float().mean().item()
    model.train()
    return right


running = 0.0
for step, (pixels, digit) in enumerate(batches(x, y, size=64, steps=400, seed=seed), 1):
    loss = loss_fn(model(pixels), digit)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    running += loss.item() / 50
    if step % 50 == 0:
        right, seen = accuracy(x_val, y_val), accuracy(x, y)
        print(f"step {step} loss {running:.3f} train {seen:.3f} val {right:.3f}")
        running = 0.0
