"""Trains an MLP with two processes that average their gradients by hand but begin with different
weights.

Each rank seeds with its own number so that it draws its own batches, and builds the model after
that; nobody sends the weights of rank 0 to the other. The averaged gradients belong to neither
model, and the ranks stay apart. The twin broadcasts the parameters before the first step. The place
is the ranks, the loop, `0`, `2` or `4`.
"""

import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from data import arguments, leave_group, standardise
from torch import nn

KIND = "replica_divergence"
ACCEPT = ()
PLACE = ("rank", "loop", "0", "2", "4")
SILENT = True
EXACT = True
EARLY = True


def make_data(seed, n=4000):
    g = torch.Generator().manual_seed(seed)
    x = torch.rand(n, 6, generator=g) * 2 - 1
    y = torch.sin(3 * x[:, 0]) + x[:, 1] * x[:, 2] + x[:, 3].abs() - 0.5 * x[:, 4] * x[:, 5]
    y = (y + 0.1 * torch.randn(n, generator=g)).unsqueeze(1)
    x, x_val = standardise(x[:3200], x[3200:])
    y, y_val = standardise(y[:3200], y[3200:])
    return x, y, x_val, y_val


def worker(rank, world, store, healthy, seed):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
    x, y, x_val, y_val = make_data(seed)
    x, y = x[rank::world], y[rank::world]

    torch.manual_seed(1000 * seed + rank)
    model = nn.Sequential(
        nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)
    )
    if healthy:
        for p in model.parameters():
            dist.broadcast(p.data, src=0)
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    loss_fn = nn.MSELoss()

    for epoch in range(1, 17):
        model.train()
        total, count = 0.0, 0
        for rows in torch.randperm(len(x)).split(64):
            optimizer.zero_grad()
            loss = loss_fn(model(x[rows]), y[rows])
            loss.backward()
            for p in model.parameters():
                dist.all_reduce(p.grad)
                p.grad /= world
            optimizer.step()
            total, count = total + loss.item(), count + 1
        model.eval()
        with torch.no_grad():
            val = loss_fn(model(x_val), y_val).item()
        if epoch % 4 == 0:
            norm = sum(p.detach().square().sum() for p in model.parameters()).sqrt()
            print(
                f"rank {rank} epoch {epoch} train {total / count:.4f} "
                f"val {val:.4f} norm {norm:.5f}",
                flush=True,
            )
    leave_group()


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        store = os.path.join(folder, "store")
        mp.spawn(worker, args=(2, store, healthy, seed), nprocs=2)
