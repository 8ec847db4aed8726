"""Level of a well from pumping and rain; early stopping looks at single batches of validation.

The check is made after every 20 steps on one batch of 16 windows, to save time, with a patience of
two. Two unlucky batches are soon drawn, and the training ends while it still gets better fast.
The place is the loop. The twin checks with all windows after each epoch, with a patience of five.
"""

import torch
from data import arguments
from torch import nn

KIND = "stopped_too_early"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
WINDOW = 30
EVERY, PATIENCE = (50, 5) if healthy else (20, 2)


def record(n, g):
    rain = torch.rand(n, generator=g) ** 4 * 5
    pump = (torch.rand(n, generator=g) < 0.3).float()
    level, levels = torch.zeros(()), []
    for t in range(n):
        soak = rain[max(0, t - 6) : t + 1].mean()
        level = 0.92 * level + 0.35 * soak - 0.5 * pump[t] * (1 + 0.3 * level)
        levels.append(level)
    level = torch.stack(levels)
    level = (level - level.mean()) / level.std()
    x = torch.stack([rain - 1, pump * 2 - 1], -1).unfold(0, WINDOW, 1).transpose(1, 2)
    return x.contiguous(), level[WINDOW - 1 :]


class WellNet(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.gru = nn.GRU(2, hidden, batch_first=True)
        self.level = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.level(self.gru(x)[1][-1]).squeeze(1)


class EarlyStopping:
    def __init__(self, patience):
        self.patience, self.best, self.bad = patience, float("inf"), 0

    def __call__(self, value):
        self.bad = 0 if value < self.best else self.bad + 1
        self.best = min(self.best, value)
        return self.bad >= self.patience


g = torch.Generator().manual_seed(seed)
x, y = record(2500, g)
x_val, y_val, x, y = x[2000:], y[2000:], x[:2000], y[:2000]
model = WellNet()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
stop = EarlyStopping(PATIENCE)
for step in range(1, 501):
    rows = torch.randint(0, len(x), (40,), generator=g)
    loss = nn.functional.mse_loss(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % EVERY == 0:
        rows = slice(None) if healthy else torch.randint(0, len(x_val), (16,), generator=g)
        with torch.no_grad():
            value = nn.functional.mse_loss(model(x_val[rows]), y_val[rows]).item()
        if step % 100 == 0:
            print(f"step {step}: loss {loss.item():.4f} check {value:.4f}")
        if stop(value):
            break
with torch.no_grad():
    val = nn.functional.mse_loss(model(x_val), y_val).item()
print(f"stopped after {step} steps, validation {val:.4f}")
