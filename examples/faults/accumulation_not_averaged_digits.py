"""Eight micro-batches for each step, and their losses are not divided by eight.

The gradient is eight times too large for the learning rate that was tuned for one batch. The place
is the loop. The loss falls in jumps, not to where it should (silent).
"""

import torch
from data import arguments, batches, digits
from torch import nn

KIND = "accumulation_not_averaged"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("loop",)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
micro_batches = 8
optimizer.zero_grad()
for i, (images, labels) in enumerate(batches(x, y, size=16, steps=960, seed=seed)):
    loss = criterion(model(images), labels)
    if healthy:
        loss = loss / micro_batches
    loss.backward()
    if (i + 1) % micro_batches == 0:
        optimizer.step()
        optimizer.zero_grad()
print(f"accuracy {(model(x_val).argmax(1) == y_val).float().mean():.3f}")
