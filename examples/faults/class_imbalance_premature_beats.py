"""A 1-D convolutional network looks for premature beats in short strips of an ECG. Three strips in
a hundred are premature, and the cross-entropy counts every strip alike.

The loss falls to a low value and 97 % of the strips are right, since hardly any beat is called
premature: the recall of the class that matters is near zero. The place is the loss, which wants
class weights.
"""

import argparse

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "class_imbalance"
ACCEPT = ()
PLACE = ("loss", "input", "loader")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
cfg = argparse.Namespace(strips=4000, length=48, rare=0.03, batch=64, epochs=8, lr=1e-3)


def strips(n, g):
    """Noisy beats; a premature one comes earlier and is a little wider."""
    y = (torch.rand(n, generator=g) < cfg.rare).long()
    t = torch.arange(cfg.length).float()
    at = 26 + 3 * torch.randn(n, 1, generator=g) - 5.0 * y[:, None]
    width = (1.5 + 0.5 * torch.rand(n, 1, generator=g)) * (1 + 0.25 * y[:, None])
    height = 1 + 0.2 * torch.randn(n, 1, generator=g)
    x = height * torch.exp(-0.5 * ((t - at) / width) ** 2)
    x += 0.25 * torch.exp(-0.5 * ((t - at - 10) / 4) ** 2) + 0.25 * torch.randn(
        n, cfg.length, generator=g
    )
    return x.unsqueeze(1), y


class Net(nn.Module):
    def __init__(self, c=12):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv1d(1, c, 7, padding=3), nn.Conv1d(c, c, 5, padding=2)
        self.fc = nn.Linear(c * cfg.length // 4, 2)
        self.drop = nn.Dropout(0.2)

    def forward(self, x):
        x = F.max_pool1d(F.relu(self.conv1(x)), 2)
        x = F.max_pool1d(F.relu(self.conv2(x)), 2)
        return self.fc(self.drop(x.flatten(1)))


g = torch.Generator().manual_seed(seed)
x, y = strips(cfg.strips, g)
x_val, y_val = strips(2000, g)
mean, std = x.mean(), x.std()
x, x_val = (x - mean) / std, (x_val - mean) / std
weight = len(y) / (2.0 * torch.bincount(y)) if healthy else None
net = Net()
optimizer = torch.optim.AdamW(net.parameters(), lr=cfg.lr, weight_decay=0.02)

for epoch in range(cfg.epochs):
    net.train()
    order = torch.randperm(cfg.strips, generator=g)
    losses = []
    for i in range(0, cfg.strips - cfg.batch + 1, cfg.batch):
        rows = order[i : i + cfg.batch]
        loss = F.cross_entropy(net(x[rows]), y[rows], weight=weight)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    net.eval()
    with torch.no_grad():
        out = net(x_val)
        val = F.cross_entropy(out, y_val, weight=weight).item()
    hit = out.argmax(1) == y_val
    found, spared = hit[y_val == 1].float().mean().item(), hit[y_val == 0].float().mean().item()
    print(
        f"epoch {epoch} train {sum(losses) / len(losses):.4f} val {val:.4f}"
        f" accuracy {hit.float().mean():.3f}"
        f" recall {found:.3f} balanced {(found + spared) / 2:.3f}"
    )
