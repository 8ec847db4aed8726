"""A snapshot ensemble: the rate falls to nearly nothing four times and jumps back up each time; a
copy of the net is kept at every bottom, and the copies vote.

The loss stands still at each bottom and bounces at each restart, by design.
"""

import copy

import torch
from data import arguments, batches, images
from torch import nn
from torch.nn import functional as F

ODD = "the rate falls to nothing four times and jumps back"

_, seed = arguments(__doc__)

CYCLE, CYCLES = 90, 4
x, y, x_val, y_val = images(seed)
net = nn.Sequential(
    nn.Conv2d(1, 12, 3, padding=1),
    nn.ReLU(),
    nn.Conv2d(12, 24, 3, stride=2, padding=1),
    nn.ReLU(),
    nn.Flatten(),
    nn.Dropout(0.3),
    nn.Linear(24 * 16, 10),
)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, CYCLE, eta_min=1e-6)
kept = []
for step, (a, b) in enumerate(batches(x, y, size=64, steps=CYCLE * CYCLES, seed=seed)):
    loss = F.cross_entropy(net(a), b)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % CYCLE == CYCLE - 1:
        kept.append(copy.deepcopy(net).eval())
    if step % 15 == 14:
        net.eval()
        with torch.no_grad():
            val = F.cross_entropy(net(x_val), y_val)
        net.train()
        print(f"step {step + 1}: loss {loss.item():.3f} val {val.item():.4f}")
with torch.no_grad():
    vote = sum(k(x_val).softmax(1) for k in kept)
print(
    f"val {val.item():.4f}"
    f" accuracy of the vote {(vote.argmax(1) == y_val).float().mean().item():.3f}"
)
