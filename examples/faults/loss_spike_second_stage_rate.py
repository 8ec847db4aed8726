"""A convolutional net in two stages, for the second of which the optimizer is made anew.

The rate of the second stage was scaled by the size of the data set instead of that of the batch:
its first updates throw away what the first stage learned, and the loss stays at that of guessing.
The twin goes on with the rate of the first. The place is the optimizer.
"""

import torch
from data import arguments, batches, images
from torch import nn

KIND = "loss_spike"
ACCEPT = ("learning_rate_too_high", "exploding_gradient", "dead_relu", "loss_not_decreasing")
PLACE = ("optimizer", "loss*", "", "*")
SILENT = False
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
model = nn.Sequential(
    nn.Conv2d(1, 12, 3, padding=1),
    nn.ReLU(),
    nn.Conv2d(12, 24, 3, stride=2, padding=1),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(384, 10),
)
criterion = nn.CrossEntropyLoss()
rate = 2e-3
for stage in range(2):
    if stage == 1 and not healthy:
        rate *= len(x) / 16
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for pixels, labels in batches(x, y, size=32, steps=250, seed=seed + stage):
        optimizer.zero_grad()
        loss = criterion(model(pixels), labels)
        loss.backward()
        optimizer.step()
with torch.no_grad():
    accuracy = (model(x_val).argmax(1) == y_val).float().mean().item()
print(f"loss {loss.item():.3f} | validation accuracy {accuracy:.3f}")
