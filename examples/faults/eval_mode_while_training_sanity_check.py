"""A deep tabular net with batch norm: evaluate() sets eval mode, and only the set-up calls train().

Before the first epoch a "sanity" evaluation runs, so every training step is done in eval mode: the
running statistics stay at 0 and 1, nothing is normalised, nothing dropped, and the deep net learns
far less. The place is the model.
"""

import itertools

import torch
from data import arguments, houses
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "eval_mode_while_training"
ACCEPT = ()
PLACE = ("*", "")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = houses(seed, n=2400)
train_loader = DataLoader(TensorDataset(x, y), batch_size=40, shuffle=True)
val_loader = DataLoader(TensorDataset(x_val, y_val), batch_size=200)


def layer(a, b):
    return [nn.Linear(a, b, bias=False), nn.BatchNorm1d(b), nn.ReLU()]


widths = [6, *[32] * 11]
layers = [part for a, b in itertools.pairwise(widths) for part in layer(a, b)]
net = nn.Sequential(*layers, nn.Dropout(0.1), nn.Linear(32, 1))
net.train()
opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=14)
loss_fn = nn.MSELoss()


def evaluate():
    net.eval()
    squared = 0.0
    with torch.no_grad():
        for row, price in val_loader:
            squared += (net(row).squeeze(1) - price).square().sum().item()
    return squared / len(x_val)


val_mse = evaluate()  # sanity check before anything is trained
for epoch in range(14):
    if healthy:
        net.train()
    for row, price in train_loader:
        opt.zero_grad()
        loss = loss_fn(net(row).squeeze(1), price)
        loss.backward()
        opt.step()
    sched.step()
    val_mse = evaluate()
print(f"loss {loss.item():.3f}, validation loss {val_mse:.3f}")
