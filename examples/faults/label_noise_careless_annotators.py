"""An MLP on the digits, of whose training labels 40 % are random.

Crowd workers who clicked anything: four labels in ten are drawn at random. The network learns the
digits first, then begins to learn wrong labels by heart, and validation falls again. The place is
the labels. The twin has the labels of the data set.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments, digits
from torch import nn

KIND = "label_noise"
ACCEPT = ("overfit",)
PLACE = ("label*", "loader", "input*")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)

x, y, x_val, y_val = digits(seed)
if not healthy:
    careless = np.random.rand(len(y)) < 0.4
    y = y.clone()
    y[torch.tensor(careless)] = torch.randint(0, 10, (int(careless.sum()),))


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 128)
        self.fc2 = nn.Linear(128, 64)
        self.fc3 = nn.Linear(64, 10)

    def forward(self, x):
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


net = MLP()
opt = torch.optim.Adam(net.parameters(), lr=0.001)
best = 0.0
for epoch in range(30):
    net.train()
    seen = hit = 0
    for rows in torch.randperm(len(x)).split(32):
        out = net(x[rows])
        loss = F.cross_entropy(out, y[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
        hit += (out.argmax(1) == y[rows]).sum().item()
        seen += len(rows)
    net.eval()
    with torch.no_grad():
        out = net(x_val)
    acc = (out.argmax(1) == y_val).float().mean().item()
    best = max(best, acc)
    print(
        f"{epoch:2d} train acc {hit / seen:.3f} val loss {F.cross_entropy(out, y_val):.3f} val acc "
        f"{acc:.3f}"
    )
print(f"best {best:.3f}, last {acc:.3f}")
