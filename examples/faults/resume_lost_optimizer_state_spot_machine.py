"""Forecasts the load of a grid on a machine that is taken away now and then; resumes lose Adam.

The checkpoint has the weights and the epoch, not the optimizer. After each interruption Adam
starts anew: its moments are empty, and the learning rate, which was halved epoch after epoch, is
back at its first value.
The place is the optimizer (its state), in `resume`.
The twin saves and loads the optimizer's state as well.
"""

import io

import torch
from data import arguments
from torch import nn

KIND = "resume_lost_optimizer_state"
ACCEPT = ("loss_spike",)
PLACE = ("optimizer", "loop")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


def load_curve(hours):
    t = torch.arange(hours, dtype=torch.float32)
    day = torch.sin(t * 6.2832 / 24) + 0.4 * torch.sin(t * 6.2832 / 12 + 1)
    week = 0.5 * ((t // 24) % 7 >= 5)
    return day - week + 0.05 * torch.randn(hours)


def build():
    model = nn.Sequential(nn.Linear(72, 64), nn.ReLU(), nn.Linear(64, 6))
    return model, torch.optim.Adam(model.parameters(), lr=2e-2)


def save(model, optimizer, epoch):
    content = {"model": model.state_dict(), "epoch": epoch}
    if healthy:
        content["optimizer"] = optimizer.state_dict()
    store = io.BytesIO()
    torch.save(content, store)
    return store.getvalue()


def resume(checkpoint):
    model, optimizer = build()
    content = torch.load(io.BytesIO(checkpoint))
    model.load_state_dict(content["model"])
    if "optimizer" in content:
        optimizer.load_state_dict(content["optimizer"])
    return model, optimizer, content["epoch"] + 1


def work_shift(model, optimizer, first, last):
    for epoch in range(first, last):
        total = 0.0
        for rows in torch.randperm(len(x)).split(32):
            loss = nn.functional.mse_loss(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows) / len(x)
        for group in optimizer.param_groups:
            group["lr"] *= 0.6
        with torch.no_grad():
            val = nn.functional.mse_loss(model(x_val), y_val).item()
        print(f"epoch {epoch:2d} loss {total:.5f} val {val:.5f}")
    return save(model, optimizer, last - 1)


windows = load_curve(1800).unfold(0, 78, 1)
x, y = windows[:1300, :72], windows[:1300, 72:]
x_val, y_val = windows[1380:, :72], windows[1380:, 72:]

model, optimizer = build()
checkpoint = work_shift(model, optimizer, 0, 7)
for last in (11, 13):
    print("machine taken away, resuming")
    model, optimizer, first = resume(checkpoint)
    checkpoint = work_shift(model, optimizer, first, last)
