"""Ten residual blocks without normalisation; each ends with a learned gain that starts at 0."""

import torch
from data import arguments, batches, images
from torch import nn

ODD = "twenty convolutions, gains that start at 0, gradients of exactly 0 in the first step"


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)
        self.gain = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return x + self.gain * self.conv2(torch.relu(self.conv1(torch.relu(x))))


class DeepNet(nn.Module):
    def __init__(self, depth=10, width=8):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, stride=2, padding=1)
        self.blocks = nn.Sequential(*[Block(width) for _ in range(depth)])
        self.head = nn.Linear(width * 16, 10)

    def forward(self, x):
        return self.head(torch.relu(self.blocks(self.stem(x))).flatten(1))


_, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
model = DeepNet()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)
for inputs, labels in batches(x, y, size=32, steps=150, seed=seed):
    loss = nn.functional.cross_entropy(model(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    print(
        f"loss {loss.item():.3f}, accuracy {(model(x_val).argmax(1) == y_val).float().mean():.3f}"
    )
