"""Two processes learn evaporation from station files under DDP, and both read the same files.

The files are shared out by the number of the node, as on the old cluster with one process for a
node. Now two processes run on a node, both are on node 0 of 1, and each reads every file in the
same order. In the time for the training half of the stations are seen, each of them twice.
The place is the loader. The twin shares the files out by rank.
"""

import itertools
import random
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from data import arguments, leave_group
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset

KIND = "duplicate_shards"
ACCEPT = ()
PLACE = ("loader", "rank", "input*")
SILENT = True
EXACT = True
EARLY = True

STATIONS, ROWS, PER_NODE, WORLD, BATCH = 24, 160, 2, 2, 16


def station(number, seed):
    """Sun, temperature, wind, moisture and altitude of a station, and its daily evaporation."""
    g = torch.Generator().manual_seed(1000 * seed + number)
    place = torch.Generator().manual_seed(number)
    altitude = torch.rand(1, generator=place) * 2 - 1
    x = torch.randn(ROWS, 5, generator=g) * 0.6
    x[:, 1] += number / STATIONS * 3 - 1.5
    x[:, 4] = altitude
    y = 0.6 * x[:, 0] + torch.sin(1.5 * x[:, 1]) + 0.4 * x[:, 2] * x[:, 1] - 0.3 * x[:, 3]
    return x, y + 0.5 * altitude + 0.1 * torch.randn(ROWS, generator=g)


class StationFiles(IterableDataset):
    def __init__(self, numbers, part, parts, seed):
        self.numbers, self.seed = numbers[part::parts], seed

    def rows(self):
        while True:
            for number in self.numbers:
                yield from zip(*station(number, self.seed), strict=False)

    def __iter__(self):
        """Rows in the order of the files, mixed by a buffer."""
        rows = self.rows()
        buffer = list(itertools.islice(rows, 640))
        for row in rows:
            place = random.randrange(len(buffer))
            yield buffer[place]
            buffer[place] = row


def worker(rank, healthy, seed, folder):
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/sync", rank=rank, world_size=WORLD
    )
    torch.manual_seed(seed)
    random.seed(seed)
    numbers = torch.randperm(STATIONS).tolist()
    part, parts = (rank, WORLD) if healthy else (rank // PER_NODE, max(1, WORLD // PER_NODE))
    loader = DataLoader(StationFiles(numbers, part, parts, seed), batch_size=BATCH)
    net = nn.Sequential(nn.Linear(5, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1))
    model = DistributedDataParallel(net)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    steps = STATIONS * ROWS // BATCH // WORLD
    for step, (x, y) in zip(range(steps), loader, strict=False):
        loss = nn.functional.mse_loss(model(x).squeeze(1), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and step % 30 == 0:
            print(f"step {step}: loss {loss.item():.3f}", flush=True)
    if rank == 0:
        held_out = [station(number, seed + 50) for number in range(STATIONS)]
        x, y = (torch.cat(parts) for parts in zip(*held_out, strict=False))
        with torch.no_grad():
            error = nn.functional.mse_loss(net(x).squeeze(1), y).item()
        print(f"error at all stations next year {error:.3f}", flush=True)
    leave_group()


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(worker, args=(healthy, seed, str(Path(folder))), nprocs=WORLD)
