"""One image at a time, with group norm, as where images are large."""

import torch
from data import arguments, images
from torch import nn

ODD = "batches of one row and of one class each, a loss that goes from 0 to 5 and back"

_, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
model = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1),
    nn.GroupNorm(4, 8),
    nn.ReLU(),
    nn.Conv2d(8, 16, 3, stride=2, padding=1),
    nn.GroupNorm(4, 16),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(256, 10),
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.005, momentum=0.9)
for i in torch.randperm(len(x))[:600]:
    loss = nn.functional.cross_entropy(model(x[i : i + 1]), y[i : i + 1])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    print(f"accuracy {(model(x_val).argmax(1) == y_val).float().mean():.3f}")
