"""Two processes train on lung function records of eight clinics; each process takes the clinics of
rank 0.

The worker reads its rank from SLURM_PROCID with 0 as a default. Under torch.multiprocessing.spawn
the variable does not exist, so both processes read the same four clinics and the other four are
never seen. DistributedDataParallel hides it. The place is the loader (the shards).
"""

import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from data import arguments, leave_group
from torch import nn
from torch.nn.parallel import DistributedDataParallel

KIND = "duplicate_shards"
ACCEPT = ("repeated_batch",)
PLACE = ("loader", "rank*", "loop", "input*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

CLINICS, PER_CLINIC, FEATURES, STEPS, BATCH = 8, 600, 20, 400, 32


def clinic(number, n, g):
    """A clinic has its own mix of patients and its own devices (shift); what matters differs along that mix."""  # noqa: E501
    shared = torch.Generator().manual_seed(77)
    w1, w2 = torch.randn(FEATURES, generator=shared), torch.randn(FEATURES, generator=shared)
    centres = 0.9 * torch.randn(CLINICS, FEATURES, generator=shared)
    x = centres[number] + torch.randn(n, FEATURES, generator=g)
    y = torch.sin(x @ w1 / 4) * 1.5 + (x @ w2 / 5).relu() + 0.15 * torch.randn(n, generator=g)
    return x, y


class Shards:
    def __init__(self, rank, world, batch):
        mine = range(rank, CLINICS, world)
        parts = [
            clinic(c, PER_CLINIC, torch.Generator().manual_seed(1000 * seed + c)) for c in mine
        ]
        self.x, self.y = torch.cat([p[0] for p in parts]), torch.cat([p[1] for p in parts])
        self.batch, self.gen = batch, torch.Generator().manual_seed(seed)

    def __iter__(self):
        while True:
            for rows in torch.randperm(len(self.x), generator=self.gen).split(self.batch):
                yield self.x[rows], self.y[rows]


def worker(local_rank, world, port, healthy):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(port)
    dist.init_process_group("gloo", rank=local_rank, world_size=world)
    torch.manual_seed(seed)
    rank = local_rank if healthy else int(os.environ.get("SLURM_PROCID", 0))  # noqa: PLW1508
    loader = iter(Shards(rank, world, BATCH))
    model = nn.Sequential(
        nn.Linear(FEATURES, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 1)
    )
    ddp = DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(ddp.parameters(), lr=3e-3, weight_decay=1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    val = [clinic(c, 100, torch.Generator().manual_seed(90000 + c)) for c in range(CLINICS)]
    xv, yv = torch.cat([v[0] for v in val]), torch.cat([v[1] for v in val])
    for step in range(1, STEPS + 1):
        x, y = next(loader)
        loss = nn.functional.mse_loss(ddp(x).squeeze(-1), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if local_rank == 0 and step % 80 == 0:
            with torch.no_grad():
                r2 = 1 - nn.functional.mse_loss(model(xv).squeeze(-1), yv) / yv.var()
            print(f"step {step} loss {loss.item():.4f} val R2 {r2:.3f}", flush=True)
    leave_group()


if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(worker, args=(2, port, healthy), nprocs=2)
