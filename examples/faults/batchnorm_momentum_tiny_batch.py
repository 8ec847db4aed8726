"""Batch norm with batches of two images: the statistics of each batch are noise.

Training is slow and unsteady, evaluation mode gives another network. The place is the batch norm
layers; the twin has group norm.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, images
from torch import nn

KIND = "batchnorm_momentum"
ACCEPT = ()
PLACE = ("norm*", "loop")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)


def norm(channels):
    return nn.GroupNorm(4, channels) if healthy else nn.BatchNorm2d(channels)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.norm1 = norm(8)
        self.conv2 = nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.norm2 = norm(16)
        self.fc = nn.Linear(16, 10)

    def forward(self, pixels):
        h = F.relu(self.norm1(self.conv1(pixels)))
        h = F.relu(self.norm2(self.conv2(h)))
        return self.fc(h.amax((2, 3)))


model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step, (pixels, labels) in enumerate(batches(x, y, size=2, steps=600, seed=seed)):
    model.train()
    loss = F.cross_entropy(model(pixels), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 99:
        model.eval()
        with torch.no_grad():
            scores = model(x_val)
            val_loss = F.cross_entropy(scores, y_val)
accuracy = (scores.argmax(1) == y_val).float().mean()
print(f"loss {loss.item():.3f}, validation {val_loss:.3f}, accuracy {accuracy:.3f}")
