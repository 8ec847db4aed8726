"""Two processes learn to sort parcels by size and weight class, and both read the same file.

The data lies in shards and every process is to read its own, found by the number of the process.
The number comes from a variable of the cluster's scheduler; started in another way it is absent and
counts as 0 for everyone, so half of the shards is never read. The place is the loader.
The twin asks the process group for the rank.
"""

import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from data import arguments, leave_group
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset

KIND = "duplicate_shards"
ACCEPT = ()
PLACE = ("loader", "input*")
SILENT = True
EXACT = True
EARLY = True

WORLD, SHARDS = 2, 8


def parcels(depot, n, seed):
    """Every depot has its own sort of goods: half of them long ones, half of them heavy ones."""
    g = torch.Generator().manual_seed(10_000 * seed + depot)
    centre = torch.randn(5, 12, generator=torch.Generator().manual_seed(depot % 2))
    y = torch.randint(0, 5, (n,), generator=g)
    x = 1.3 * centre[y] + torch.randn(n, 12, generator=g)
    x[:, 0] += 1.5 if depot % 2 else -1.5
    return x, y


class ShardReader(IterableDataset):
    def __init__(self, rank, seed):
        self.mine = list(range(SHARDS))[rank::WORLD]
        self.seed, self.epoch = seed, 0

    def __iter__(self):
        parts = [parcels(shard, 120, self.seed) for shard in self.mine]
        x, y = (torch.cat(part) for part in zip(*parts, strict=True))
        g = torch.Generator().manual_seed(self.epoch)
        self.epoch += 1
        for i in torch.randperm(len(x), generator=g):
            yield x[i], y[i]


def worker(rank, rendezvous, healthy, seed):
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    dist.init_process_group("gloo", init_method=rendezvous, rank=rank, world_size=WORLD)
    shard_rank = dist.get_rank() if healthy else int(os.environ.get("SLURM_PROCID", "0"))
    loader = DataLoader(ShardReader(shard_rank, seed), batch_size=32, drop_last=True)
    net = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 5))
    model = DistributedDataParallel(net)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    held = [parcels(shard, 100, seed + 500) for shard in range(SHARDS)]
    x_val, y_val = (torch.cat(part) for part in zip(*held, strict=True))
    for epoch in range(10):
        total = torch.zeros(())
        for count, (x, y) in enumerate(loader, 1):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        dist.all_reduce(total)
        if rank == 0:
            with torch.no_grad():
                accuracy = (net(x_val).argmax(1) == y_val).float().mean()
            print(f"epoch {epoch} loss {total / count / WORLD:.3f} val {accuracy:.3f}", flush=True)
    leave_group()


def main():
    healthy, seed = arguments(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(worker, (f"file://{folder}/meet", healthy, seed), nprocs=WORLD)


if __name__ == "__main__":
    main()
