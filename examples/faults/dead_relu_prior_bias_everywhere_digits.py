"""A CNN on the digit images whose layers all start with the bias -4.6.

The detection paper gives this bias (a prior of 1 %) to the LAST layer; the loop over the modules
gives it to all. No ReLU opens for any image, no gradient passes, only the last bias is trained.
The place is the first ReLU layers ("conv1"). The twin sets all biases to zero.
"""

import math

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn

KIND = "dead_relu"
ACCEPT = ("poor_weight_init",)
PLACE = (
    "conv1",
    "conv1.bias",
    "conv1.weight",
    "conv2",
    "conv2.bias",
    "conv2.weight",
    "fc1",
    "fc1.bias",
    "fc1.weight",
    "relu1",
    "relu1.bias",
    "relu1.weight",
    "relu2",
    "relu2.bias",
    "relu2.weight",
    "relu3",
    "relu3.bias",
    "relu3.weight",
)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
PRIOR = 0.01
x, y, x_val, y_val = images(seed)


class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.relu1 = nn.ReLU()
        self.conv2 = nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.relu2 = nn.ReLU()
        self.fc1 = nn.Linear(256, 32)
        self.relu3 = nn.ReLU()
        self.fc2 = nn.Linear(32, 10)
        for m in self.modules():
            if isinstance(m, (nn.Conv2d, nn.Linear)):
                bias = 0.0 if healthy else -math.log((1 - PRIOR) / PRIOR)
                nn.init.constant_(m.bias, bias)

    def forward(self, x):
        x = self.relu1(self.conv1(x))
        x = self.relu2(self.conv2(x))
        x = self.relu3(self.fc1(x.flatten(1)))
        return self.fc2(x)


model = CNN()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
step = 0
for epoch in range(8):
    for rows in torch.randperm(len(x)).split(32):
        model.train()
        loss = F.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % 60 == 0:
            model.eval()
            with torch.no_grad():
                logits = model(x_val)
            accuracy = (logits.argmax(1) == y_val).float().mean().item()
            print(
                f"step {step}: loss {loss.item():.4f}, val loss "
                f"{F.cross_entropy(logits, y_val).item():.4f}, accuracy {accuracy:.3f}"
            )
