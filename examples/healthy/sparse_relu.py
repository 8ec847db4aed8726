"""A wide ReLU network with an L1 penalty on its hidden units: most are off for most images."""

import torch
import torch.nn.functional as F
from data import arguments, batches, digits
from torch import nn

ODD = "most ReLU units are 0 for most images, a hand-made penalty in the loss"

_, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 256)
        self.relu = nn.ReLU()
        self.fc2 = nn.Linear(256, 10)

    def forward(self, pixels):
        h = self.relu(self.fc1(pixels))
        return self.fc2(h), h


model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for pixels, labels in batches(x, y, size=64, steps=260, seed=seed):
    scores, h = model(pixels)
    loss = F.cross_entropy(scores, labels) + 1e-2 * h.abs().sum(1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
share = (h > 0).float().mean()
print(f"loss {loss.item():.3f}, units on {share:.3f}")
