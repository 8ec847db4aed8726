"""Learns wave heights from buoys in short night jobs; each job starts with an empty optimizer.

The cluster allows jobs of forty steps, after which the script saves and is started again. The
checkpoint holds the weights only: Adam's averages are lost each time, and the first steps after it
are large in every direction. The place is the loading of the checkpoint.
The twin saves and loads the state of the optimizer as well.
"""

import tempfile
from pathlib import Path

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
JOBS, STEPS = 12, 40
g = torch.Generator().manual_seed(90 + seed)


def sea(n):
    t = torch.arange(32) * 0.5
    height = 0.5 + 2 * torch.rand(n, 1, generator=g)
    period = 4 + 6 * torch.rand(n, 1, generator=g)
    swell = height * torch.sin(6.283 * t / period + 6.283 * torch.rand(n, 1, generator=g))
    chop = 0.2 * torch.randn(n, 32, generator=g)
    return (swell + chop).unsqueeze(2), torch.cat([height - 1.5, (period - 7) / 3], 1)


class Buoy(nn.Module):
    def __init__(self):
        super().__init__()
        self.read = nn.GRU(1, 32, batch_first=True)
        self.out = nn.Linear(32, 2)

    def forward(self, x):
        return self.out(self.read(x)[0].mean(1))


def save(path, model, optimizer, step):
    state = {"model": model.state_dict(), "step": step}
    if healthy:
        state["optimizer"] = optimizer.state_dict()
    torch.save(state, path)


def resume(path, model, optimizer):
    if not path.exists():
        return 0
    state = torch.load(path)
    model.load_state_dict(state["model"])
    if healthy:
        optimizer.load_state_dict(state["optimizer"])
    return state["step"]


def job(path, x, y, x_val, y_val):
    model = Buoy()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    begin = resume(path, model, optimizer)
    losses = []
    for _ in range(STEPS):
        rows = torch.randint(0, len(x), (64,))
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    save(path, model, optimizer, begin + STEPS)
    with torch.no_grad():
        val = nn.functional.mse_loss(model(x_val), y_val).item()
    print(f"from {begin}: first {losses[1]:.3f} last {losses[-1]:.3f} validation {val:.4f}")


x, y = sea(2000)
held = sea(400)
with tempfile.TemporaryDirectory() as folder:
    for _ in range(JOBS):
        job(Path(folder) / "buoy.pt", x, y, *held)
