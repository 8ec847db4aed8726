"""Wear of cutting tools: early stopping asks for a gain that no epoch can give.

The stopper was written for accuracies in percent, `min_delta=0.5`, with a patience of two. On a
mean squared error that starts at one, a gain of a half comes once at most, and the training ends
after a few epochs while the loss is still falling. The place is the loop, the validation.
The twin asks for 0.0005 with a patience of eight.
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


class Stopper:
    def __init__(self, patience, min_delta):
        self.patience, self.min_delta = patience, min_delta
        self.best, self.waited = None, 0

    def __call__(self, value):
        if self.best is None or value < self.best - self.min_delta:
            self.best, self.waited = value, 0
        else:
            self.waited += 1
        return self.waited >= self.patience


class Wear(nn.Module):
    def __init__(self):
        super().__init__()
        self.force = nn.Conv1d(2, 12, 7, stride=2)
        self.spread = nn.Conv1d(12, 12, 5, stride=2)
        self.wear = nn.Linear(12 * 2, 1)

    def forward(self, x):
        x = torch.relu(self.force(x))
        x = torch.relu(self.spread(x))
        x = torch.cat([x.mean(2), x.amax(2)], 1)
        return self.wear(x).squeeze(1)


def cuts(n, g):
    wear = torch.rand(n, generator=g)
    t = torch.arange(64)
    speed = 0.5 + 0.3 * torch.rand(n, 1, generator=g)
    force = (1 + wear[:, None]) * (1 + 0.5 * torch.sin(speed * t)) - 1.2
    chatter = wear[:, None] ** 2 * torch.sin(2.4 * t + 6 * torch.rand(n, 1, generator=g))
    x = torch.stack([force * (0.8 + 0.4 * torch.rand(n, 1, generator=g)), chatter], 1)
    return x + 0.3 * torch.randn(n, 2, 64, generator=g), (wear - 0.5) / 0.29


healthy, seed = arguments(__doc__)
g = torch.Generator().manual_seed(seed)
x, y = cuts(1200, g)
x_val, y_val = cuts(300, g)
model = Wear()
opt = torch.optim.Adam(model.parameters(), lr=3e-4)
stop = Stopper(patience=8, min_delta=5e-4) if healthy else Stopper(patience=2, min_delta=0.5)
for epoch in range(32):
    train = 0.0
    for idx in torch.randperm(1200, generator=g).split(40):
        loss = nn.functional.mse_loss(model(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        train += loss.item() / 30
    with torch.no_grad():
        val = nn.functional.mse_loss(model(x_val), y_val).item()
    if epoch % 4 == 0:
        print(f"epoch {epoch}: train {train:.4f} val {val:.4f}")
    if stop(val):
        break
print(f"stopped after epoch {epoch}: train {train:.4f} val {val:.4f}")
