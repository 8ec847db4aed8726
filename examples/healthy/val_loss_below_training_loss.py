"""The validation loss is well below the training loss in every epoch.

In training the images are moved, dimmed and mixed, and dropout is on; the validation images are
plain. So training is the harder of the two and there is no leak, no fault and no place.
"""

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn

ODD = "the validation loss is far below the training loss (strong augmentation and dropout)"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(1, 24, 3, padding=1)
        self.c2 = nn.Conv2d(24, 32, 3, padding=1)
        self.fc1 = nn.Linear(32 * 16, 64)
        self.fc2 = nn.Linear(64, 10)
        self.drop = nn.Dropout(0.4)

    def forward(self, x):
        z = F.relu(self.c1(x))
        z = F.max_pool2d(F.relu(self.c2(z)), 2)
        z = F.relu(self.fc1(self.drop(z.flatten(1))))
        return self.fc2(self.drop(z))


def augment(x, y):
    down = int(torch.randint(-1, 2, ()))
    x = torch.roll(x, down, 2) * torch.empty(len(x), 1, 1, 1).uniform_(0.8, 1.2)
    x = x + 0.15 * torch.randn_like(x)
    mate = torch.randperm(len(x))
    keep = 0.7 + 0.3 * torch.rand(len(x), 1)
    mixed = keep.view(-1, 1, 1, 1) * x + (1 - keep.view(-1, 1, 1, 1)) * x[mate]
    soft = keep * F.one_hot(y, 10) + (1 - keep) * F.one_hot(y[mate], 10)
    return mixed, soft


_, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
net = Net()
optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=0.01)
for epoch in range(12):
    net.train()
    total = []
    for rows in torch.randperm(len(x)).split(48):
        mixed, soft = augment(x[rows], y[rows])
        loss = F.cross_entropy(net(mixed), soft)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total.append(loss.item())
    net.eval()
    with torch.no_grad():
        scores = net(x_val)
    val, hits = F.cross_entropy(scores, y_val), (scores.argmax(1) == y_val).float().mean()
    if epoch % 3 == 2:
        print(
            f"epoch {epoch}: loss {sum(total) / len(total):.3f},"
            f" val loss {val:.3f}, val accuracy {hits:.3f}"
        )
