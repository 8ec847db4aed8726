"""A convolutional network for digits that keeps each validation loss with its graph.

The validation runs without no_grad, and the loss tensors go into a list: none of the activations
of any validation is ever freed. The results are right, the memory grows. The place is the loop.
"""

import resource

import torch
from data import arguments, batches, images
from torch import nn

KIND = "memory_leak"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = True


class SmallCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 24, 3, padding=1)
        self.conv2 = nn.Conv2d(24, 24, 3, padding=1)
        self.fc = nn.Linear(24 * 16, 10)

    def forward(self, x):
        x = torch.relu(self.conv1(x))
        x = nn.functional.max_pool2d(torch.relu(self.conv2(x)), 2)
        return self.fc(x.flatten(1))


healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
net = SmallCNN()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
val_losses = []
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for step, (pixels, labels) in enumerate(batches(x, y, size=32, steps=300, seed=seed)):
    net.train()
    optimizer.zero_grad()
    loss = criterion(net(pixels), labels)
    loss.backward()
    optimizer.step()
    if step % 10 == 9:
        net.eval()
        if healthy:
            with torch.no_grad():
                val_losses.append(criterion(net(x_val), y_val).item())
        else:
            val_losses.append(criterion(net(x_val), y_val))
grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
print(f"loss {loss.item():.3f}, validation {val_losses[-1]:.3f}, grown by {grown:.0f} MB")
