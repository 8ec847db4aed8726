"""Pixels are standardised one by one; those at the rim are always 0, and 0 / 0 is NaN.

The loss is NaN from the first step. The place is the input. Exact.
"""

import torch
import torch.nn.functional as F
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "nan_input"
ACCEPT = ("non_finite_input",)
PLACE = ("input*", "fc1", "")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed, raw=True)
mean, std = x.mean(0), x.std(0)
x = (x - mean) / (std.clamp(min=0.1) if healthy else std)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 40)
        self.fc2 = nn.Linear(40, 10)

    def forward(self, pixels):
        return F.log_softmax(self.fc2(torch.tanh(self.fc1(pixels))), dim=1)


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(7):
    for images, labels in DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True):
        loss = F.nll_loss(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(f"loss {loss.item():.3f}")
