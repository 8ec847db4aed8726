"""Snapshot ensemble for handwritten digits: a cosine schedule that starts afresh four times.

Each cycle ends with a learning rate near nothing and leaves one member of the ensemble; then the
rate goes back to its top and the loss rises for a while. The members vote at the end.
"""

import copy

import torch
from data import arguments, images
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingWarmRestarts
from torch.utils.data import DataLoader, TensorDataset

ODD = "the learning rate falls to almost zero and leaps back, with a rise of the loss at each leap"

CYCLES, EPOCHS = 4, 3


def accuracy(nets, x, y):
    with torch.no_grad():
        vote = torch.stack([net.eval()(x).softmax(1) for net in nets]).mean(0)
    return (vote.argmax(1) == y).float().mean().item()


def main():
    _, seed = arguments(__doc__)
    x, y, x_val, y_val = images(seed)
    loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True, drop_last=True)
    net = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 24, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(24),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(24 * 16, 10),
    )
    opt = torch.optim.SGD(net.parameters(), lr=0.15, momentum=0.9, weight_decay=5e-4)
    cosine = CosineAnnealingWarmRestarts(opt, T_0=EPOCHS * len(loader), eta_min=1e-4)
    snapshots = []
    for epoch in range(CYCLES * EPOCHS):
        net.train()
        for a, b in loader:
            loss = nn.functional.cross_entropy(net(a), b, label_smoothing=0.05)
            opt.zero_grad()
            loss.backward()
            opt.step()
            cosine.step()
        if (epoch + 1) % EPOCHS == 0:
            snapshots.append(copy.deepcopy(net))
            alone = accuracy([net], x_val, y_val)
            together = accuracy(snapshots, x_val, y_val)
            print(f"{len(snapshots)}: loss {loss:.3f} alone {alone:.4f} together {together:.4f}")


main()
