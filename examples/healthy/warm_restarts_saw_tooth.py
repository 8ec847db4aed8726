"""An MLP tells three kinds of wine-like chemistry apart; its rate jumps up four times.

It looks odd because the loss is a saw-tooth: at every warm restart of the cosine schedule the
rate goes from nearly 0 back to its peak and the training loss jumps up for some steps. That is
how SGDR works; each cycle ends lower than the one before it, in training and validation alike.
"""

import torch
from data import arguments, batches
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingWarmRestarts

ODD = "An MLP tells three kinds of wine-like chemistry apart; its rate jumps up four times"
_, seed = arguments(__doc__)

CLASSES, COLUMNS = 6, 12


def chemistry(n):
    """Two clusters of correlated measurements for each of six kinds."""
    y = torch.randint(0, CLASSES, (n,))
    half = torch.randint(0, 2, (n,))
    centre = 0.75 * torch.randn(CLASSES, 2, COLUMNS)
    mix = torch.eye(COLUMNS) + 0.25 * torch.randn(COLUMNS, COLUMNS)
    x = centre[y, half] + torch.randn(n, COLUMNS) @ mix
    return x, y


x, y = chemistry(9000)
cut = 7500
x = (x - x[:cut].mean(0)) / x[:cut].std(0)
x_val, y_val = x[cut:], y[cut:]
model = nn.Sequential(
    nn.Linear(COLUMNS, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, CLASSES)
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-3)
schedule = CosineAnnealingWarmRestarts(optimizer, T_0=300, eta_min=1e-4)
criterion = nn.CrossEntropyLoss()
for step, (a, b) in enumerate(batches(x[:cut], y[:cut], size=64, steps=1500, seed=seed), 1):
    loss = criterion(model(a), b)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 50 == 0:
        model.eval()
        with torch.no_grad():
            out = model(x_val)
            val, right = criterion(out, y_val), (out.argmax(1) == y_val).float().mean()
        model.train()
        rate = schedule.get_last_lr()[0]
        print(f"step {step} rate {rate:.4f} loss {loss.item():.3f} val {val:.3f} right {right:.3f}")
