"""Ratings of podcasts by factors with Adagrad; after each job its sums are lost.

The cluster ends a job after an epoch; the next job loads the checkpoint, which holds only the
model. Adagrad's sums of squared gradients begin at zero again, so that the rates, long since
small, are as large as on the first day.
The place is the optimizer. The twin saves and loads the optimizer, too.
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
LISTENERS, PODCASTS, DIM, JOBS, EPOCHS = 300, 200, 8, 10, 1


class Factors(nn.Module):
    def __init__(self):
        super().__init__()
        self.listener, self.podcast = nn.Embedding(LISTENERS, DIM), nn.Embedding(PODCASTS, DIM)
        self.listener_bias = nn.Embedding(LISTENERS, 1)
        self.podcast_bias = nn.Embedding(PODCASTS, 1)
        for table in (self.listener, self.podcast):
            nn.init.normal_(table.weight, std=0.1)
        for table in (self.listener_bias, self.podcast_bias):
            nn.init.zeros_(table.weight)

    def forward(self, u, i):
        dot = (self.listener(u) * self.podcast(i)).sum(1)
        return dot + self.listener_bias(u).squeeze(1) + self.podcast_bias(i).squeeze(1)


def ratings(n, g):
    a, b = torch.randn(LISTENERS, 3, generator=g), torch.randn(PODCASTS, 3, generator=g)
    u = torch.randint(0, LISTENERS, (n,), generator=g)
    i = torch.randint(0, PODCASTS, (n,), generator=g)
    level = 0.5 * torch.randn(PODCASTS, generator=g)
    y = (a[u] * b[i]).sum(1) * 0.5 + level[i] + 0.4 * torch.randn(n, generator=g)
    return u, i, (y - y.mean()) / y.std()


def job(path, data, val):
    model = Factors()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.3)
    if path.exists():
        state = torch.load(path)
        model.load_state_dict(state["model"])
        if "optimizer" in state:
            optimizer.load_state_dict(state["optimizer"])
    u, i, y = data
    for _ in range(EPOCHS):
        total = 0.0
        for rows in torch.randperm(len(y)).split(100):
            loss = nn.functional.mse_loss(model(u[rows], i[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows) / len(y)
        with torch.no_grad():
            error = nn.functional.mse_loss(model(val[0], val[1]), val[2]).item()
        print(f"train {total:.3f} validation {error:.3f}")
    state = {"model": model.state_dict()}
    if healthy:
        state["optimizer"] = optimizer.state_dict()
    torch.save(state, path)


u, i, y = ratings(14000, torch.Generator().manual_seed(seed))
with tempfile.TemporaryDirectory() as folder:
    for _ in range(JOBS):
        job(
            Path(folder) / "last.pt",
            (u[:12000], i[:12000], y[:12000]),
            (u[12000:], i[12000:], y[12000:]),
        )
