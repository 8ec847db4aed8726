"""The wines by a small MLP and plain SGD with a rate of 1e-5.

The rate was lowered again and again after an earlier version had diverged on unscaled data. Now
the loss creeps down in the fourth digit and the training ends where it began. The place is the
optimizer. The twin uses 0.05.
"""

import torch
from data import arguments, wine
from torch import nn, optim

KIND = "learning_rate_too_low"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = wine(seed)
BATCH = 16

net = nn.Sequential(nn.Linear(13, 24), nn.ReLU(), nn.Linear(24, 3))
opt = optim.SGD(net.parameters(), lr=0.05 if healthy else 1e-5)
lossfn = nn.CrossEntropyLoss()


def train_one_epoch():
    net.train()
    idx = torch.randperm(x.size(0))
    running = 0.0
    for k in range(0, x.size(0), BATCH):
        rows = idx[k : k + BATCH]
        opt.zero_grad()
        loss = lossfn(net(x[rows]), y[rows])
        loss.backward()
        opt.step()
        running += loss.item() * len(rows)
    return running / x.size(0)


def validate():
    net.eval()
    with torch.no_grad():
        out = net(x_val)
        return lossfn(out, y_val).item(), (out.argmax(1) == y_val).float().mean().item()


for epoch in range(60):
    train_loss = train_one_epoch()
    val_loss, val_acc = validate()
    if epoch % 10 == 9:
        print(f"{epoch + 1:3d}  train {train_loss:.5f}  val {val_loss:.5f}  acc {val_acc:.3f}")
