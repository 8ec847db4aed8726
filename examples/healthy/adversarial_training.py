"""Adversarial training: each batch is moved along the sign of its own gradient, then learned."""

import torch
from data import arguments, batches, digits
from torch import nn

ODD = "inputs require gradients, two backward passes in each step and one step of the optimizer"

_, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for images, labels in batches(x, y, size=64, steps=250, seed=seed):
    images.requires_grad_(True)
    criterion(model(images), labels).backward()
    attacked = (images + 0.15 * images.grad.sign()).detach()
    optimizer.zero_grad()
    loss = criterion(model(attacked), labels)
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}, accuracy {(model(x_val).argmax(1) == y_val).float().mean():.3f}")
