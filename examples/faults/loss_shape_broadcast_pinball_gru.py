"""A GRU estimates the upper quantile of the coming demand; the hand-written pinball loss gets (N,)
and (N, 1).

Their difference is an N x N table, so every forecast is compared with the demand of all the other
windows and the network learns one number for all. The loss falls at first and then stays. The twin
gives targets of shape (N,). The place is the loss, the labels or `head`.
"""

import numpy as np
import torch
from data import arguments, batches
from torch import nn

KIND = "loss_shape_broadcast"
ACCEPT = ()
PLACE = ("loss*", "label*", "classes*", "head")
SILENT = True
EXACT = True
EARLY = True

QUANTILE, WINDOW = 0.8, 14
healthy, seed = arguments(__doc__)


def pinball(pred, target):
    error = target - pred
    return torch.maximum(QUANTILE * error, (QUANTILE - 1) * error).mean()


def make_demand(days):
    t = np.arange(days)
    level = np.cumsum(np.random.randn(days) * 0.05)
    level = level - np.linspace(0, level[-1], days)
    week = np.array([0.0, 0.2, 0.1, 0.4, 1.2, 1.8, 0.6])[t % 7]
    return level + week + 0.25 * np.random.randn(days)


class DemandModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(1, 24, batch_first=True)
        self.head = nn.Linear(24, 1)

    def forward(self, x):
        _, h = self.gru(x)
        return self.head(h[-1]).squeeze(-1)


demand = make_demand(3000)
cut = 2400
demand = torch.tensor((demand - demand[:cut].mean()) / demand[:cut].std(), dtype=torch.float32)
train = demand[:cut].unfold(0, WINDOW + 1, 1)
test = demand[cut:].unfold(0, WINDOW + 1, 1)
x, y = train[:, :-1].unsqueeze(-1), train[:, -1:]
x_test, y_test = test[:, :-1].unsqueeze(-1), test[:, -1]
if healthy:
    y = y.squeeze(-1)

model = DemandModel()
optimizer = torch.optim.RMSprop(model.parameters(), lr=2e-3)
steps = 700
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
running = 0.0
for step, (xb, yb) in enumerate(batches(x, y, size=64, steps=steps, seed=seed), 1):
    model.train()
    loss = pinball(model(xb), yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    running += loss.item()
    if step % 100 == 0:
        model.eval()
        with torch.no_grad():
            pred = model(x_test)
            print(
                f"step {step}: loss {running / 100:.4f}, test {pinball(pred, y_test):.4f}, "
                f"below the forecast {(y_test < pred).float().mean():.2f}"
            )
        running = 0.0
