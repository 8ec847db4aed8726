"""Finds one small disturbance that, added to any digit, misleads a trained classifier."""

import torch
from data import arguments, batches, images
from torch import nn

ODD = (
    "the second loss is maximised: cross-entropy grows and accuracy falls, since the only thing "
    "trained is an attack on a frozen net, clamped into its box after every step"
)
_, seed = arguments(__doc__)
torch.set_num_threads(1)

BOX = 0.6
x, y, x_val, y_val = images(seed)
net = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.ReLU(),
    nn.Conv2d(16, 32, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(512, 10),
)
criterion = nn.CrossEntropyLoss()


@torch.no_grad()
def accuracy(disturbance):
    net.eval()
    return (net(x_val + disturbance).argmax(1) == y_val).float().mean().item()


optimizer = torch.optim.Adam(net.parameters(), lr=2e-3, weight_decay=1e-4)
for step, (pictures, labels) in enumerate(batches(x, y, size=64, steps=300, seed=seed)):
    net.train()
    loss = criterion(net(pictures), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 99:
        print(f"net: step {step + 1}  loss {loss.item():.3f}  validation {accuracy(0.0):.3f}")

net.requires_grad_(False).eval()
disturbance = nn.Parameter(torch.zeros(1, 1, 8, 8))
attack = torch.optim.Adam([disturbance], lr=0.02, maximize=True)
for step, (pictures, labels) in enumerate(batches(x, y, size=128, steps=300, seed=seed + 1)):
    gain = criterion(net(pictures + disturbance), labels)
    attack.zero_grad()
    gain.backward()
    attack.step()
    with torch.no_grad():
        disturbance.clamp_(-BOX, BOX)
    if step % 100 == 99:
        print(f"attack: step {step + 1}  cross-entropy {gain.item():.3f}")

by_chance = [accuracy(BOX * torch.randn(1, 1, 8, 8).sign()) for _ in range(10)]
print(
    f"validation accuracy: clean {accuracy(0.0):.3f}, random signs of the same size "
    f"{sum(by_chance) / 10:.3f}, learned disturbance {accuracy(disturbance):.3f}"
)
