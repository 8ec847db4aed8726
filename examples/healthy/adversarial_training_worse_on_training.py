"""Digits learned under attack: the training accuracy is far below that on clean, unseen digits.

Each training picture is first changed, within a small range, in the direction in which the loss
grows most. People ask why the training accuracy is so low and its loss so high; the training
numbers are those on the attacked pictures, which are harder than the clean ones.
"""

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "training accuracy 0.84 under attack, validation 0.98 on clean pictures: attacks are harder"
_, seed = arguments(__doc__)

RANGE, ATTACK_STEPS = 0.5, 2


def attack(net, x, y):
    """Two steps up the loss from a random start, kept within the range."""
    change = (torch.rand_like(x) * 2 - 1) * RANGE
    for _ in range(ATTACK_STEPS):
        change.requires_grad_(True)
        loss = F.cross_entropy(net(x + change), y)
        (slope,) = torch.autograd.grad(loss, change)
        change = (change.detach() + 0.6 * RANGE * slope.sign()).clamp(-RANGE, RANGE)
    return x + change


def share_right(net, x, y):
    with torch.no_grad():
        return (net(x).argmax(1) == y).float().mean().item()


def main():
    x, y, x_val, y_val = images(seed)
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True, drop_last=True)
    net = nn.Sequential(
        nn.Conv2d(1, 24, 3, padding=1), nn.ReLU(), nn.Conv2d(24, 32, 3, padding=1, stride=2),
        nn.ReLU(), nn.Flatten(), nn.Linear(512, 64), nn.ReLU(), nn.Linear(64, 10),
    )  # fmt: skip
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    epochs = 12
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, 0.05, epochs=epochs, steps_per_epoch=len(loader)
    )
    for epoch in range(epochs):
        loss_sum = right = seen = 0
        for xb, yb in loader:
            hard = attack(net, xb, yb)
            logits = net(hard)
            loss = F.cross_entropy(logits, yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            loss_sum += loss.item() * len(yb)
            right += (logits.argmax(1) == yb).sum().item()
            seen += len(yb)
        clean = share_right(net, x_val, y_val)
        attacked = share_right(net, attack(net, x_val, y_val), y_val)
        print(
            f"epoch {epoch:2d} train (attacked) loss {loss_sum / seen:.3f} acc {right / seen:.3f}"
            f" | val clean {clean:.3f} attacked {attacked:.3f}"
        )


main()
