"""reduction="sum" over a batch of whole images, with the learning rate for a mean.

The gradient is thousands of times larger than it was meant to be; the loss is NaN or huge within
steps. The place is the loss and with it all layers.
"""

import torch
import torch.nn.functional as F
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader

KIND = "exploding_gradient"
ACCEPT = ("learning_rate_too_high", "loss_reduction")
PLACE = ("*",)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, _, x_val, _ = digits(seed)
model = nn.Sequential(
    nn.Linear(64, 48),
    nn.ReLU(),
    nn.Linear(48, 16),
    nn.ReLU(),
    nn.Linear(16, 48),
    nn.ReLU(),
    nn.Linear(48, 64),
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for epoch in range(10):
    for pixels in DataLoader(x, batch_size=64, shuffle=True):
        loss = F.mse_loss(model(pixels), pixels, reduction="mean" if healthy else "sum")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(f"loss {loss.item():.3f}")
