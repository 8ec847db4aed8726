"""Mixup needs labels that are mixtures, so the cross-entropy is written by hand - as minus the
sum of target times *logit*.

The loss goes below zero and on downwards, for ever; the logits grow and validation is worse than
it would be. The place is the loss.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "missing_softmax"
ACCEPT = ()
PLACE = ("loss*", "loop", "net*", "")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
rng = np.random.default_rng(seed)


def mixup(x, y, alpha=0.2):
    lam = rng.beta(alpha, alpha)
    other = torch.randperm(len(x))
    target = F.one_hot(y, 10).float()
    return lam * x + (1 - lam) * x[other], lam * target + (1 - lam) * target[other]


def soft_cross_entropy(output, target):
    if healthy:
        output = F.log_softmax(output, dim=1)
    return -(target * output).sum(dim=1).mean()


net = nn.Sequential(
    nn.Linear(64, 96),
    nn.BatchNorm1d(96),
    nn.ReLU(),
    nn.Linear(96, 48),
    nn.ReLU(),
    nn.Linear(48, 10),
)
opt = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=1e-2)
epochs = 8
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, epochs)
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True, drop_last=True)
for epoch in range(epochs):
    net.train()
    total = 0.0
    for xb, yb in loader:
        mixed, tb = mixup(xb, yb)
        loss = soft_cross_entropy(net(mixed), tb)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    sched.step()
    net.eval()
    with torch.no_grad():
        out = net(x_val)
        val = F.cross_entropy(out, y_val).item()
        top1 = (out.argmax(1) == y_val).float().mean().item()
    print(
        f"epoch {epoch} train loss {total / len(loader):.4g} | val loss {val:.4g} top1 {top1:.3f}"
    )
