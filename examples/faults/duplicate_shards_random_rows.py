"""A regression whose ranks draw their batches with numpy.random, all from the same seed.

Reproducible, as the guide said: seed_everything(42) on each rank, then
np.random.choice(len(x), 64) for each batch. All ranks draw the same rows; the gradients that are
averaged are one. The place is the loader.
"""

import tempfile

import numpy as np
import torch
import torch.distributed as dist
from data import arguments, leave_group
from sklearn.datasets import make_friedman1
from torch import nn
from torch.nn import functional as F

KIND = "duplicate_shards"
ACCEPT = ()
PLACE = ("rank", "loader", "input*")
SILENT = True
EXACT = True
EARLY = True

WORLD = 2


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(10, 64)
        self.deeper = nn.Linear(64, 64)
        self.out = nn.Linear(64, 1)

    def forward(self, x):
        return self.out(F.silu(self.deeper(F.silu(self.hidden(x))))).squeeze(1)


def seed_everything(seed):
    np.random.seed(seed)
    torch.manual_seed(seed)


def work(rank, store, healthy, seed):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=WORLD)
    seed_everything(seed)
    x, y = make_friedman1(4000, noise=1.0, random_state=seed)
    x = torch.tensor((x - x.mean(0)) / x.std(0), dtype=torch.float32)
    y = torch.tensor((y - y.mean()) / y.std(), dtype=torch.float32)
    model = Regressor()
    if healthy:
        np.random.seed(1000 * seed + rank)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for step in range(300):
        rows = np.random.choice(3000, 64)
        loss = F.mse_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= WORLD
        optimizer.step()
    with torch.no_grad():
        error = F.mse_loss(model(x[3000:]), y[3000:]).item()
    if rank == 0:
        print(f"loss {loss.item():.3f}, on new data {error:.3f}")
    leave_group()


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(work, (f"{folder}/store", healthy, seed), nprocs=WORLD)
