"""A CNN with batch normalisation on raw digit images; momentum=0.001.

A Keras script had momentum=0.999 (the share KEPT), meant for a million steps; the author turned it
into 0.001 for PyTorch but trains for 210 steps only: the running statistics hardly leave 0 and 1,
and evaluation is far worse than training. The place is the BatchNorm layers. The twin has the
default 0.1.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "batchnorm_momentum"
ACCEPT = ()
PLACE = ("bn1", "bn2")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
MOMENTUM = 0.1 if healthy else 0.001
x, y, x_val, y_val = images(seed, raw=True)
x, x_val = x / 16, x_val / 16
train = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True, drop_last=True)


class SmallCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 12, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(12, momentum=MOMENTUM)
        self.conv2 = nn.Conv2d(12, 24, 3, padding=1, stride=2, bias=False)
        self.bn2 = nn.BatchNorm2d(24, momentum=MOMENTUM)
        self.fc = nn.Linear(24 * 16, 10)

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        x = torch.relu(self.bn2(self.conv2(x)))
        return self.fc(x.flatten(1))


net = SmallCNN()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
ce = nn.CrossEntropyLoss()
for epoch in range(10):
    net.train()
    hits = total = 0
    for images_, labels in train:
        opt.zero_grad()
        out = net(images_)
        loss = ce(out, labels)
        loss.backward()
        opt.step()
        hits += (out.argmax(1) == labels).sum().item()
        total += len(labels)
    net.eval()
    with torch.no_grad():
        out = net(x_val)
        val = (out.argmax(1) == y_val).float().mean().item()
        print(
            f"epoch {epoch}: train acc {hits / total:.3f} val acc {val:.3f} "
            f"val loss {ce(out, y_val).item():.3f}"
        )
