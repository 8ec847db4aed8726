"""Heating demand of buildings: Adam's two betas have been written in the wrong order.

The settings came from a table in a wiki, in which the columns were the other way round. Adam
now averages the gradient over a thousand steps and its square over ten, so it keeps on pushing
long after the gradient has turned.
The place is the optimizer. The twin has the usual order.
"""

import torch
from data import arguments, batches
from torch import nn
from torch.nn import functional as F

KIND = "bad_optimizer_settings"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("optimizer",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

config = {
    "hidden": 64,
    "steps": 700,
    "batch_size": 64,
    "optimizer": {"lr": 3e-3, "betas": (0.9, 0.999) if healthy else (0.999, 0.9)},
}


def buildings(n=2400):
    area, glazing, walls, height = torch.rand(4, n)
    direction = torch.randint(0, 4, (n,))
    insulation = torch.rand(n)
    facing = F.one_hot(direction, 4).float()
    load = 2 * area * (1.3 - insulation) + 3 * glazing * (direction == 0).float()
    load = load + torch.sin(4 * height) + walls * walls + 0.08 * torch.randn(n)
    x = torch.cat([torch.stack([area, glazing, walls, height, insulation], 1), facing], 1)
    x = (x - x.mean(0)) / x.std(0)
    return x, (load - load.mean()) / load.std()


class DemandModel(nn.Module):
    def __init__(self, columns, hidden):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(columns, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU()
        )
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.out(self.body(x)).squeeze(-1)


x, y = buildings()
x_train, y_train, x_test, y_test = x[:1800], y[:1800], x[1800:], y[1800:]
model = DemandModel(x.shape[1], config["hidden"])
opt = torch.optim.Adam(model.parameters(), **config["optimizer"])

stream = batches(x_train, y_train, size=config["batch_size"], steps=config["steps"], seed=seed)
for step, (xb, yb) in enumerate(stream, 1):
    opt.zero_grad()
    loss = F.mse_loss(model(xb), yb)
    loss.backward()
    opt.step()
    if step % 100 == 0:
        model.eval()
        with torch.no_grad():
            test = F.mse_loss(model(x_test), y_test)
        model.train()
        print(f"step {step:4d} loss {loss.item():.4f} test mse {test.item():.4f}")
