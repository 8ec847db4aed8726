"""SGD with warm restarts: the rate jumps back to its start three times."""

import torch
from data import arguments, batches, images
from torch import nn

ODD = "the loss rises at each restart, the learning rate falls to nearly 0"

_, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
model = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(128, 32),
    nn.ReLU(),
    nn.Linear(32, 10),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.15, momentum=0.9)
schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=40, T_mult=2)
for pixels, labels in batches(x, y, size=64, steps=280, seed=seed):
    optimizer.zero_grad()
    loss = criterion(model(pixels), labels)
    loss.backward()
    optimizer.step()
    schedule.step()
print(f"loss {loss.item():.3f}, accuracy {(model(x_val).argmax(1) == y_val).float().mean():.3f}")
