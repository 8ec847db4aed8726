"""Foretells how long lorries wait in a yard; the job is restarted often and loses Adam's memory.

The cheap machine is taken away now and then, so the training writes a checkpoint after every
epoch and starts from it again. The checkpoint has the weights and the epoch, not the optimizer's
averages: they begin at nothing after each restart, and the first steps are far too large.
The place is the optimizer, where the training resumes.
The twin saves and loads the optimizer's state too.
"""

import os
import tempfile

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "resume_lost_optimizer_state"
ACCEPT = ("loss_spike",)
PLACE = ("optimizer", "loop")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def lorries(n, seed):
    r = np.random.default_rng(seed)
    hour, gates = r.uniform(4, 22, n), r.integers(1, 7, n)
    queue, pallets = r.poisson(6, n), r.integers(1, 34, n)
    cooled, staff = r.random(n) < 0.3, r.uniform(2, 10, n)
    minutes = 4 * queue / gates * (1 + 0.6 * np.exp(-((hour - 9) ** 2) / 4)) + pallets / staff * 6
    minutes = minutes + 12 * cooled * (gates < 3) + r.normal(0, 0.3, n)
    x = np.column_stack([hour, gates, queue, pallets, cooled, staff]).astype(float)
    return x, np.log(minutes.clip(3))


x, y = lorries(3000, seed)
x_val, y_val = lorries(1000, seed + 60)
mean, std, middle, spread = x.mean(0), x.std(0), y.mean(), y.std()
x, x_val = (torch.tensor((part - mean) / std, dtype=torch.float32) for part in (x, x_val))
y, y_val = (torch.tensor((part - middle) / spread, dtype=torch.float32) for part in (y, y_val))


def build():
    net = nn.Sequential(nn.Linear(6, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    return net, optimizer


def save(path, net, optimizer, epoch):
    state = {"net": net.state_dict(), "epoch": epoch}
    if healthy:
        state["optimizer"] = optimizer.state_dict()
    torch.save(state, path)


def session(path, epochs):
    """Trains for some epochs, from the checkpoint if there is one."""
    net, optimizer = build()
    first = 0
    if os.path.exists(path):
        state = torch.load(path)
        net.load_state_dict(state["net"])
        if "optimizer" in state:
            optimizer.load_state_dict(state["optimizer"])
        first = state["epoch"] + 1
    for epoch in range(first, first + epochs):
        total = 0.0
        for rows in torch.randperm(len(x)).split(500):
            loss = nn.functional.mse_loss(net(x[rows])[:, 0], y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        save(path, net, optimizer, epoch)
        with torch.no_grad():
            error = nn.functional.mse_loss(net(x_val)[:, 0], y_val).item()
        if epoch % 9 == 8:
            print(f"epoch {epoch}: loss {total / len(x):.4f}, validation {error:.4f}")


with tempfile.TemporaryDirectory() as folder:
    for _ in range(90):
        session(os.path.join(folder, "last.pt"), 1)
