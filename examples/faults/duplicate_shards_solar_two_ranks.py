"""Solar output on two processes by hand-written data parallelism; both take the same half.

Every rank should take each second row, beginning with its own number. The slice was written
as rows[::world], with no rank in it: half of the measurements are never used, and averaging
the gradients of two equal batches changes nothing.
The place is the loader (the slice of rows). The twin begins at its own rank.
"""

import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from data import arguments, leave_group
from torch import nn

KIND = "duplicate_shards"
ACCEPT = ("repeated_batch", "duplicated_rows")
PLACE = ("loader", "input*")
SILENT = True
EXACT = True
EARLY = True


def roofs(n, seed):
    """Sun height, azimuth, cloud, temperature, dust, tilt, wind, age -> output of a roof."""
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 8, generator=g)
    sun = (x[:, 0] + 0.5 * x[:, 1] * x[:, 5]).sigmoid() * (1.5 - x[:, 2].sigmoid())
    y = 3 * sun - 0.3 * x[:, 3] * x[:, 6].tanh() - 0.2 * x[:, 4] - 0.15 * x[:, 7]
    y = y + 0.1 * torch.randn(n, generator=g)
    return x, ((y - 1.5) / 0.7)[:, None]


def build_model():
    hidden = [nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU()]
    return nn.Sequential(*hidden, nn.Linear(64, 1))


def average_gradients(model, world):
    flat = torch.cat([p.grad.flatten() for p in model.parameters()])
    dist.all_reduce(flat)
    sizes = [p.numel() for p in model.parameters()]
    for p, part in zip(model.parameters(), (flat / world).split(sizes), strict=False):
        p.grad.copy_(part.view_as(p))


def worker(rank, world, store, healthy, seed):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
    x, y = roofs(240, 400 + seed)
    x_val, y_val = roofs(600, 1400 + seed)
    torch.manual_seed(seed)
    model = build_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-3)

    for epoch in range(40):
        order = torch.randperm(len(x), generator=torch.Generator().manual_seed(epoch))
        fixed = torch.arange(len(x))
        mine = fixed[rank::world] if healthy else fixed[::world]
        mine = mine[order[order < len(mine)]]
        total = 0.0
        for rows in mine.split(20):
            loss = nn.functional.mse_loss(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            average_gradients(model, world)
            optimizer.step()
            total += loss.item()
        if rank == 0 and epoch % 10 == 9:
            with torch.no_grad():
                val = nn.functional.mse_loss(model(x_val), y_val).item()
            print(f"epoch {epoch + 1}: loss {total / 6:.3f}, validation {val:.3f}", flush=True)
    dist.barrier()
    leave_group()


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(worker, (2, os.path.join(folder, "store"), healthy, seed), nprocs=2)
    sys.stdout.flush()
