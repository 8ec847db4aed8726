"""ReduceLROnPlateau, with its default mode "min", is given the validation R2, which should rise.

Every better R2 counts as no progress, so the rate is divided by five every fourth epoch and is a
five-hundredth after 16 of 50 epochs: the fit stops half-way. The place is the scheduler, that is,
the optimizer's learning rate.
"""

import torch
from data import arguments, standardise
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader, TensorDataset

KIND = "schedule_collapsed"
ACCEPT = ()
PLACE = ("optimizer", "loop", "")
SILENT = True
EXACT = False
EARLY = False


def friedman(n):
    u = torch.rand(n, 7)
    y = 10 * torch.sin(3.14 * u[:, 0] * u[:, 1]) + 20 * (u[:, 2] - 0.5) ** 2
    return u, y + 10 * u[:, 3] + 5 * u[:, 4] + 0.7 * torch.randn(n)


def r2(model, x, y):
    with torch.no_grad():
        return 1 - ((model(x).squeeze(1) - y).var() / y.var()).item()


healthy, _ = arguments(__doc__)
x, y = friedman(1600)
x, y = (standardise(part)[0] for part in (x, y))
x, x_val, y, y_val = x[:1200], x[1200:], y[:1200], y[1200:]

model = nn.Sequential(nn.Linear(7, 64), nn.Tanh(), nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.025, momentum=0.9)
mode = {"mode": "max"} if healthy else {}
scheduler = ReduceLROnPlateau(optimizer, factor=0.2, patience=3, **mode)
loader = DataLoader(TensorDataset(x, y), batch_size=100, shuffle=True)

for epoch in range(50):
    for features, target in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(features).squeeze(1), target)
        loss.backward()
        optimizer.step()
    score = r2(model, x_val, y_val)
    scheduler.step(score)
    if epoch % 5 == 4:
        rate = optimizer.param_groups[0]["lr"]
        print(f"epoch {epoch + 1}: loss {loss.item():.4f} R2 {score:.4f} lr {rate:.1e}")
