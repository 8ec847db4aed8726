"""Linear regression that is at its noise floor after 50 of 400 steps."""

import torch
from data import arguments, batches
from torch import nn

ODD = "the loss stands still for most of the training, at the variance of the noise"

_, seed = arguments(__doc__)
x = torch.randn(1500, 8)
y = x @ torch.randn(8, 1) + 1.0 * torch.randn(1500, 1)
model = nn.Linear(8, 1)
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for features, target in batches(x, y, size=50, steps=400, seed=seed):
    optimizer.zero_grad()
    loss = criterion(model(features), target)
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
