"""Two processes learn to foretell crop yield, average gradients by hand, and start apart.

Each process seeds with its rank so that both draw other batches. The model is built after that, so
their weights differ from the first step, and averaging gradients does not bring them together: each
applies steps that are half meant for the other. The place is the start of the loop.
The twin sends the weights of process 0 to the other before training.
"""

import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from data import arguments, leave_group
from torch import nn

KIND = "replica_divergence"
ACCEPT = ()
PLACE = ("loop", "model", "0", "0.weight", "optimizer")
SILENT = True
EXACT = True
EARLY = True


def fields(n, g):
    rain, heat, soil, nitrogen = torch.randn(4, n, generator=g)
    good = torch.exp(-((rain - 0.4 * heat) ** 2)) * (1 + 0.5 * soil)
    y = good + 0.4 * torch.tanh(2 * nitrogen) * rain.sin() + 0.05 * torch.randn(n, generator=g)
    return torch.stack([rain, heat, soil, nitrogen], 1), (y - 0.55) / 0.55


def average_gradients(model, world):
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= world


def farm(rank, world, meet, healthy, seed):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=meet, rank=rank, world_size=world)
    g = torch.Generator().manual_seed(100 + seed)
    x, y = fields(3000, g)
    x_val, y_val = fields(600, g)
    torch.manual_seed(1000 * seed + rank)
    model = nn.Sequential(
        nn.Linear(4, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 1)
    )
    if healthy:
        for p in model.parameters():
            dist.broadcast(p.data, src=0)
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    mine = torch.arange(rank, len(x), world)
    for step in range(1, 401):
        rows = mine[torch.randint(0, len(mine), (32,))]
        loss = (model(x[rows]).squeeze(1) - y[rows]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        average_gradients(model, world)
        optimizer.step()
        if step % 100 == 0 and rank == 0:
            with torch.no_grad():
                val = (model(x_val).squeeze(1) - y_val).square().mean()
            print(f"step {step} loss {loss.item():.4f} validation {val.item():.4f}", flush=True)
    leave_group()


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(farm, (2, f"file://{folder}/store", healthy, seed), nprocs=2)
