"""Prices of used cars in jobs of limited length; each job continues without the optimizer's state.

The cluster ends a job after a while and the next one reads the checkpoint. It holds the weights
and the epoch, and not the optimizer, so the moments of Adam and the lowered learning rate are
lost: after each continuation the steps are long again, and the loss jumps.
The place is the optimizer.
The twin saves and loads its state as well.
"""

import os
import tempfile

import torch
from data import arguments
from torch import nn

KIND = "resume_lost_optimizer_state"
ACCEPT = ("loss_spike",)
PLACE = ("optimizer", "loop")
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)


def used_cars(n, g):
    x = torch.randn(n, 10, generator=g)
    price = 1.2 * torch.exp(-0.5 * x[:, 0]) + 0.6 * x[:, 1] * (x[:, 2] > 0) + 0.4 * x[:, 3]
    return x, (price - 1.4) / 1.1 + 0.05 * torch.randn(n, generator=g)


def build():
    model = nn.Sequential(
        nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-2, betas=(0.9, 0.99))
    return model, optimizer


def save(path, model, optimizer, epoch):
    state = {"model": model.state_dict(), "epoch": epoch}
    if healthy:
        state["optimizer"] = optimizer.state_dict()
    torch.save(state, path)


def load(path, model, optimizer):
    if not os.path.exists(path):
        return 0
    state = torch.load(path)
    model.load_state_dict(state["model"])
    if "optimizer" in state:
        optimizer.load_state_dict(state["optimizer"])
    return state["epoch"]


def job(path, data, epochs):
    x, y, x_val, y_val = data
    model, optimizer = build()
    begin = load(path, model, optimizer)
    for epoch in range(begin, begin + epochs):
        for rows in torch.randperm(len(x)).split(64):
            loss = nn.functional.mse_loss(model(x[rows]).squeeze(1), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        for group in optimizer.param_groups:
            group["lr"] *= 0.88
        with torch.no_grad():
            val = nn.functional.mse_loss(model(x_val).squeeze(1), y_val).item()
        print(f"epoch {epoch}: train {loss.item():.4f} val {val:.4f}")
    save(path, model, optimizer, begin + epochs)


g = torch.Generator().manual_seed(seed)
data = (*used_cars(1600, g), *used_cars(400, g))
with tempfile.TemporaryDirectory() as folder:
    for night in range(8):
        print(f"job {night}")
        job(os.path.join(folder, "cars.pt"), data, epochs=2)
