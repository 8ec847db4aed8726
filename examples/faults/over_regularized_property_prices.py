"""Prices of districts' homes from six columns; the weight decay holds the network down.

The value was found in a paper that used it with decoupled decay and a tiny step; here it goes into
plain Adam as an L2 term, where it outweighs the gradient of a standardised target. The network
keeps too near to the mean price and cannot even fit the training part.
The place is the optimizer: its weight decay.
The twin has a decay of 1e-4.
"""

import torch
from data import arguments, batches, houses
from torch import nn

KIND = "over_regularized"
ACCEPT = ()
PLACE = ("optimizer", "loss*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

config = {
    "hidden": [64, 64],
    "batch_size": 64,
    "steps": 900,
    "lr": 2e-3,
    "weight_decay": 1e-4 if healthy else 0.3,
    "eval_every": 150,
}


def build(widths, n_in):
    layers = []
    for width in widths:
        layers += [nn.Linear(n_in, width), nn.SiLU()]
        n_in = width
    return nn.Sequential(*layers, nn.Linear(n_in, 1))


def r2(model, x, y):
    model.eval()
    with torch.no_grad():
        residual = model(x).squeeze(-1) - y
    model.train()
    return 1 - (residual.pow(2).mean() / y.var()).item()


x, y, x_val, y_val = houses(seed)
model = build(config["hidden"], x.shape[1])
optimizer = torch.optim.Adam(
    model.parameters(), lr=config["lr"], weight_decay=config["weight_decay"]
)
stream = batches(x, y, size=config["batch_size"], steps=config["steps"], seed=seed)
for step, (xb, yb) in enumerate(stream, start=1):
    loss = nn.functional.mse_loss(model(xb).squeeze(-1), yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % config["eval_every"] == 0:
        print(
            f"step {step:4d}  loss {loss.item():.3f}  "
            f"R2 train {r2(model, x, y):.3f}  val {r2(model, x_val, y_val):.3f}"
        )
