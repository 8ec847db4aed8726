"""A regression of house prices with averaged weights (EMA) beside the trained ones.

Fault: when `model` was split into `net` and `average`, the line that clears gradients went with
the copy: `average.zero_grad()`. The net's gradients pile up. The place is the loop. The loss falls
and swings up again. Exact.
"""

import copy

import torch
from data import arguments, batches, houses
from torch import nn
from torch.nn import functional as F

KIND = "gradients_not_cleared"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("loop",)
SILENT = False
EXACT = True
EARLY = True


def update_average(average, net, decay=0.97):
    with torch.no_grad():
        for slow, fast in zip(average.parameters(), net.parameters(), strict=True):
            slow.lerp_(fast, 1 - decay)


def r2(model, x, y):
    with torch.no_grad():
        return 1 - (F.mse_loss(model(x).squeeze(1), y) / y.var()).item()


def main():
    healthy, seed = arguments(__doc__)
    x, y, x_val, y_val = houses(seed)
    net = nn.Sequential(nn.Linear(6, 48), nn.SiLU(), nn.Linear(48, 48), nn.SiLU(), nn.Linear(48, 1))
    average = copy.deepcopy(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.03, momentum=0.9)
    for step, (xb, yb) in enumerate(batches(x, y, size=64, steps=400, seed=seed), 1):
        loss = F.huber_loss(net(xb).squeeze(1), yb)
        if healthy:
            net.zero_grad()
        else:
            average.zero_grad()
        loss.backward()
        optimizer.step()
        update_average(average, net)
        if step % 80 == 0:
            print(f"step {step}: loss {loss.item():.4f}, R2 {r2(average, x_val, y_val):.3f}")
    print(f"loss {loss.item():.4f} | validation R2 {r2(average, x_val, y_val):.3f}")


if __name__ == "__main__":
    main()
