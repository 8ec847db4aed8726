"""Validation uses an averaged copy of the net, made by deepcopy in training mode and never put in
eval.

`net.eval()` is called, but on the wrong one: the copy that is scored drops half its units at random
and normalises by each validation batch. The place is the averaged model in the loop's validation.
"""

import copy

import torch
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "train_mode_in_validation"
ACCEPT = ()
PLACE = ("loop", "average*", "net*", "[0-9]*", "")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class Average:
    """An exponential moving average of a network's weights."""

    def __init__(self, net, keep=0.95):
        self.net = copy.deepcopy(net).requires_grad_(False)
        self.keep = keep
        if healthy:
            self.net.eval()

    @torch.no_grad()
    def update(self, net):
        for mine, new in zip(self.net.parameters(), net.parameters(), strict=False):
            mine.lerp_(new, 1 - self.keep)
        for mine, new in zip(self.net.buffers(), net.buffers(), strict=False):
            mine.copy_(new)


@torch.no_grad()
def validate(net, average, loader):
    net.eval()
    right, total, loss = 0, 0, 0.0
    for x, y in loader:
        out = average.net(x)
        loss += nn.functional.cross_entropy(out, y, reduction="sum").item()
        right += (out.argmax(1) == y).sum().item()
        total += len(y)
    net.train()
    return loss / total, right / total


x, y, x_val, y_val = digits(seed)
train = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True, drop_last=True)
val = DataLoader(TensorDataset(x_val, y_val), batch_size=30)

net = nn.Sequential(
    nn.Linear(64, 128),
    nn.BatchNorm1d(128),
    nn.ReLU(),
    nn.Dropout(0.5),
    nn.Linear(128, 64),
    nn.BatchNorm1d(64),
    nn.ReLU(),
    nn.Dropout(0.5),
    nn.Linear(64, 10),
)
average = Average(net)
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 14)
for epoch in range(14):
    for inputs, target in train:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(inputs), target)
        loss.backward()
        optimizer.step()
        average.update(net)
    scheduler.step()
    val_loss, val_right = validate(net, average, val)
    print(
        f"epoch {epoch}: train {loss.item():.3f} val loss {val_loss:.3f} accuracy {val_right:.3f}"
    )
