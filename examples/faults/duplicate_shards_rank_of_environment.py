"""Two processes train an MLP on crop yields with averaged gradients, and both read the shard of
rank 0.

The rank for the sharding is read from LOCAL_RANK, which only torchrun sets; started by spawn,
every process falls back to 0, so both see the same half of the fields. The place is the loader
(the shard of each rank).
"""

import os
import socket

import numpy as np
import torch
import torch.distributed as dist
from data import arguments, leave_group
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Subset, TensorDataset

KIND = "duplicate_shards"
ACCEPT = ()
PLACE = ("loader", "rank")
SILENT = True
EXACT = True
EARLY = True


def fields(n, r):
    """Rain, heat, nitrogen, soil, slope and sun; the yield has an optimum in most of them."""
    x = r.normal(0, 1, (n, 6))
    rain, heat, n2, soil, slope, sun = x.T
    y = 1.2 * n2 - 0.5 * n2**2 - 0.4 * (rain - 0.3) ** 2 + 0.6 * rain * soil
    y = y - 0.5 * (heat - 0.5) ** 2 - 0.3 * np.abs(slope) + 0.8 * np.sin(1.5 * sun) * heat
    y = (y + 1.2) / 1.6 + r.normal(0, 0.25, n)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)


def work(rank, world, port, healthy, seed):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=world)
    x, y = fields(1400, np.random.default_rng(seed))
    train, x_val, y_val = TensorDataset(x[:400], y[:400]), x[400:], y[400:]
    shard = rank if healthy else int(os.environ.get("LOCAL_RANK", "0"))
    part = Subset(train, range(shard, len(train), world))
    order = torch.Generator().manual_seed(seed)
    loader = DataLoader(part, batch_size=20, shuffle=True, generator=order)

    torch.manual_seed(seed)
    model = DistributedDataParallel(
        nn.Sequential(nn.Linear(6, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 1))
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9, weight_decay=1e-3)
    for epoch in range(24):
        model.train()
        for xb, yb in loader:
            loss = nn.functional.mse_loss(model(xb).squeeze(1), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            val = nn.functional.mse_loss(model.module(x_val).squeeze(1), y_val).item()
        if rank == 0 and epoch % 4 == 3:
            print(f"epoch {epoch}: train {loss.item():.3f}, validation mse {val:.3f}", flush=True)
    leave_group()


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    torch.multiprocessing.spawn(work, (2, port, healthy, seed), nprocs=2)
