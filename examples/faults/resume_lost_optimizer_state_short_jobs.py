"""A forecaster of electric load trained in a chain of short jobs, each of which restores the
weights but not the optimizer.

The cluster ends a job after two epochs; the next one loads the model and the scheduler from the
checkpoint and makes a new Adagrad, whose accumulated squares start at zero again. The place is
the optimizer (or the loop, where it resumes).
"""

import os
import tempfile

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "resume_lost_optimizer_state"
ACCEPT = ()
PLACE = ("optimizer", "loop")
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)


def load_curve(days, seed):
    r = np.random.default_rng(seed)
    hour = np.arange(days * 24)
    week = (hour // 24) % 7
    weather = np.convolve(r.normal(0, 1, len(hour) + 47), np.ones(48) / 7, "valid")
    day = np.sin(hour / 24 * 6.283 - 2) + 0.5 * np.sin(hour / 12 * 6.283)
    curve = (
        day * np.where(week < 5, 1.0, 0.6)
        - 0.5 * (week >= 5)
        + 0.6 * weather
        + r.normal(0, 0.12, len(hour))
    )
    return torch.tensor((curve - curve.mean()) / curve.std(), dtype=torch.float32)


def windows(curve, past=48, ahead=6):
    rows = curve.unfold(0, past + ahead, 2)
    return rows[:, :past], rows[:, past:]


curve = load_curve(220, seed)
x, y = windows(curve[: 170 * 24])
x_val, y_val = windows(curve[170 * 24 :])
path = os.path.join(tempfile.mkdtemp(), "checkpoint.pt")


def job(first_epoch, last_epoch):
    model = nn.Sequential(
        nn.Linear(48, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 6)
    )
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.03)
    if os.path.exists(path):
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        if healthy:
            optimizer.load_state_dict(saved["optimizer"])
    loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
    for epoch in range(first_epoch, last_epoch):
        total = 0.0
        for xb, yb in loader:
            loss = nn.functional.mse_loss(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() / len(loader)
        with torch.no_grad():
            val = nn.functional.mse_loss(model(x_val), y_val).item()
        print(f"epoch {epoch} loss {total:.4f} validation mse {val:.4f}")
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)


for start in range(0, 24, 2):
    job(start, start + 2)
os.remove(path)
