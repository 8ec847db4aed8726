"""Adversarial training (PGD) of a digit classifier: four backward passes per step, in eval mode,
uphill in the input.

It looks odd because three of the four passes climb the loss and belong to the input, the net is
in eval mode during the attack (so that BatchNorm's averages see no half-made pictures), the
training loss stays far above that of clean validation pictures, and the training inputs are more
spread than those of validation. That is the method: accuracy under attack goes up, clean accuracy
stays high.
"""

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn

ODD = "three of four backward passes of a step climb the loss, for the input, and in eval mode"
_, seed = arguments(__doc__)
EPS, ALPHA, ATTACK = 0.35, 0.16, 3


def build():
    return nn.Sequential(
        nn.Conv2d(1, 24, 3, padding=1, bias=False), nn.BatchNorm2d(24), nn.ReLU(),
        nn.Conv2d(24, 32, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(),
        nn.Flatten(), nn.Linear(32 * 16, 64), nn.ReLU(), nn.Linear(64, 10),
    )  # fmt: skip


def attack(model, x, y, steps):
    was_training = model.training
    model.eval()
    delta = torch.empty_like(x).uniform_(-EPS, EPS)
    for _ in range(steps):
        delta.requires_grad_()
        (slope,) = torch.autograd.grad(F.cross_entropy(model(x + delta), y), delta)
        delta = (delta.detach() + ALPHA * slope.sign()).clamp(-EPS, EPS)
    model.train(was_training)
    return (x + delta).detach()


def evaluate(model, x, y):
    model.eval()
    hostile = attack(model, x, y, 8)
    with torch.no_grad():
        clean = model(x)
        result = (
            F.cross_entropy(clean, y).item(),
            (clean.argmax(1) == y).float().mean().item(),
            (model(hostile).argmax(1) == y).float().mean().item(),
        )
    model.train()
    return result


x, y, x_val, y_val = images(seed)
model = build()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(x, y), batch_size=64, shuffle=True, drop_last=True
)
epochs = 12
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.05, total_steps=epochs * len(loader))
for epoch in range(epochs):
    total = 0.0
    for xb, yb in loader:
        hostile = attack(model, xb, yb, ATTACK)
        loss = F.cross_entropy(model(hostile), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        total += loss.item()
    if epoch % 3 == 2:
        val, clean, robust = evaluate(model, x_val, y_val)
        print(
            f"epoch {epoch + 1}: adversarial loss {total / len(loader):.3f}, val loss {val:.3f}, clean accuracy {clean:.3f}, under attack {robust:.3f}"  # noqa: E501
        )
