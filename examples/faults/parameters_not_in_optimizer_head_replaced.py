"""Transfer from six digits to the other four: the head is replaced after the optimizer was made.

The optimizer holds the old head, which nothing uses any more; the new one keeps its random start,
and the trunk has to bend to it at its low rate. The accuracy ends well below the twin's.
"""

import torch
from data import arguments, batches, images
from torch import nn

KIND = "parameters_not_in_optimizer"
ACCEPT = ()
PLACE = ("fc*", "*.fc*", "optimizer")
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)


class SmallResNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 16, 3, padding=1)
        self.conv3 = nn.Conv2d(16, 24, 3, stride=2, padding=1)
        self.fc = nn.Linear(24 * 4, classes)

    def forward(self, x):
        h = torch.relu(self.conv1(x))
        h = torch.relu(h + self.conv2(h))
        h = torch.relu(self.conv3(h))
        return self.fc(nn.functional.max_pool2d(h, 2).flatten(1))


def accuracy(net, x, y):
    net.eval()
    with torch.no_grad():
        return (net(x).argmax(1) == y).float().mean().item()


def make_optimizer(net, body_lr):
    head = list(net.fc.parameters())
    body = [p for n, p in net.named_parameters() if not n.startswith("fc.")]
    return torch.optim.Adam([{"params": body, "lr": body_lr}, {"params": head, "lr": 2e-3}])


x, y, x_val, y_val = images(seed)
old, old_val = y < 6, y_val < 6

resnet = SmallResNet(classes=6)
optimizer = make_optimizer(resnet, body_lr=2e-3)
for pixels, label in batches(x[old], y[old], size=32, steps=200, seed=seed):
    loss = nn.functional.cross_entropy(resnet(pixels), label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
source = accuracy(resnet, x_val[old_val], y_val[old_val])

# fine-tuning on the four unseen digits: a small rate for the body, a normal one for the head
optimizer = make_optimizer(resnet, body_lr=2e-5)
resnet.fc = nn.Linear(24 * 4, 4)
if healthy:
    optimizer = make_optimizer(resnet, body_lr=2e-5)
resnet.train()
for pixels, label in batches(x[~old], y[~old] - 6, size=32, steps=300, seed=seed + 1):
    loss = nn.functional.cross_entropy(resnet(pixels), label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
target = accuracy(resnet, x_val[~old_val], y_val[~old_val] - 6)
print(f"loss {loss.item():.3f}, source accuracy {source:.3f}, target accuracy {target:.3f}")
