"""A tabular net with feature gates predicts house prices. RMSprop is set as in the Inception paper,
epsilon 1.0 included.

The gradients here are a hundredth and less: beside an epsilon of one their root mean square is
nothing, nothing is divided out, and the steps are those of plain SGD with a rate of 0.001. The
place is the optimizer.
"""

import argparse

import torch
from data import arguments, houses
from torch import nn
from torch.nn import functional as F

KIND = "bad_optimizer_settings"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

hp = argparse.Namespace(lr=1e-3, alpha=0.9, eps=1e-8 if healthy else 1.0, epochs=25, batch=64)


class GatedBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(width, width)

    def forward(self, x):
        return x + self.down(F.glu(self.up(self.norm(x))))


class TabNet(nn.Module):
    def __init__(self, columns, width=32):
        super().__init__()
        self.stem = nn.Linear(columns, width)
        self.blocks = nn.Sequential(GatedBlock(width), GatedBlock(width))
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x))).squeeze(-1)


x, y, x_val, y_val = houses(seed)
model = TabNet(x.shape[1])
optimizer = torch.optim.RMSprop(model.parameters(), lr=hp.lr, alpha=hp.alpha, eps=hp.eps)
decay = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
for epoch in range(hp.epochs):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(x)).split(hp.batch):
        loss = F.huber_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows) / len(x)
    decay.step()
    model.eval()
    with torch.no_grad():
        out = model(x_val)
    r2 = 1 - (out - y_val).pow(2).mean() / y_val.var()
    print(
        f"epoch {epoch}: train {total:.4f} val {F.huber_loss(out, y_val).item():.4f}"
        f" r2 {r2.item():.3f}"
    )
