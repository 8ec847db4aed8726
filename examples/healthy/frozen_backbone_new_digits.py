"""A convolutional body learns the digits 0 to 6, then is frozen under a head for 7 to 9."""

import torch
from data import arguments, batches, images
from torch import nn

ODD = "the body's parameters are frozen, in eval mode and in no optimizer while the head learns"

_, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
backbone = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.BatchNorm2d(16),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1),
    nn.BatchNorm2d(32),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
)
criterion = nn.CrossEntropyLoss()


def fit(model, optimizer, data, steps, size):
    for pixels, labels in batches(*data, size=size, steps=steps, seed=seed):
        optimizer.zero_grad()
        loss = criterion(model(pixels), labels)
        loss.backward()
        optimizer.step()
    return loss.item()


old = y < 7
first = nn.Sequential(backbone, nn.Linear(128, 7))
first.train()
fit(first, torch.optim.Adam(first.parameters(), lr=2e-3), (x[old], y[old]), steps=150, size=64)

backbone.requires_grad_(False)
backbone.eval()
head = nn.Linear(128, 3)
model = nn.Sequential(backbone, head)
new, new_val = ~old, y_val >= 7
optimizer = torch.optim.Adam(head.parameters(), lr=0.01)
loss = fit(model, optimizer, (x[new], y[new] - 7), steps=150, size=40)
with torch.no_grad():
    out = model(x_val[new_val])
    val_loss = criterion(out, y_val[new_val] - 7)
    accuracy = (out.argmax(1) == y_val[new_val] - 7).float().mean()
print(f"loss {loss:.3f}, validation {val_loss:.3f}, accuracy {accuracy:.3f}")
