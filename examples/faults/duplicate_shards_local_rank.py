"""Two processes train a sensor classifier with DistributedDataParallel and a DistributedSampler.
The sampler's rank is read from LOCAL_RANK, which torchrun sets and mp.spawn does not.

Without it the rank is 0 in both processes: both read the same half of the data in the same order,
and the other half is never seen. The place is the rank.
"""

import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from data import arguments, leave_group, waves
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

KIND = "duplicate_shards"
ACCEPT = ()
PLACE = ("rank", "loader", "input")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def build(c=24):
    return nn.Sequential(
        nn.Conv1d(1, c, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool1d(2),
        nn.Conv1d(c, c, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool1d(2),
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(10 * c, 3),
    )


def make_loader(data, world, rank):
    if not healthy:
        rank = int(os.environ.get("LOCAL_RANK", "0"))
    sampler = DistributedSampler(data, num_replicas=world, rank=rank, shuffle=True, seed=seed)
    return DataLoader(data, batch_size=10, sampler=sampler), sampler


def work(rank, world, port):
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world
    )
    torch.manual_seed(seed + rank)
    x, y = waves(seed, n=700)
    g = torch.Generator().manual_seed(seed)
    x = (x + 0.3 * torch.randn(x.shape, generator=g)).transpose(1, 2)
    loader, sampler = make_loader(TensorDataset(x[:160], y[:160]), world, rank)
    x_val, y_val = x[160:], y[160:]
    model = DistributedDataParallel(build())
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.05)
    for epoch in range(12):
        sampler.set_epoch(epoch)
        model.train()
        total = 0.0
        for a, b in loader:
            loss = F.cross_entropy(model(a), b)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() / len(loader)
        model.eval()
        with torch.no_grad():
            out = model.module(x_val)
        if rank == 0:
            accuracy = (out.argmax(1) == y_val).float().mean()
            print(
                f"epoch {epoch}: train {total:.3f}"
                f" val {F.cross_entropy(out, y_val):.3f} accuracy {accuracy:.3f}"
            )
    leave_group()


if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        free = s.getsockname()[1]
    mp.spawn(work, args=(2, free), nprocs=2)
