"""Two processes learn the daily sales of shops; both read the files of the same shops.

Each process takes every second shop, from the number in the environment on. The job used to be
started by a launcher that set LOCAL_RANK; now the script starts its processes itself, the variable
is not there, and the default of 0 holds for both. Half of the shops are never seen.
The place is the loader: the share of the data each rank takes.
The twin takes the rank that spawn hands over.
"""

import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from data import arguments, leave_group
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import ConcatDataset, DataLoader, TensorDataset

KIND = "duplicate_shards"
ACCEPT = ()
PLACE = ("loader", "input*")
SILENT = True
EXACT = True
EARLY = True

WORLD, SHOPS, DAYS = 2, 24, 160


def shop(number, seed):
    """Days of one shop: place in the week and year, weather, promotion, size and town."""
    g = torch.Generator().manual_seed(100 * seed + number)
    town = number % 6
    size = 0.5 + 0.06 * number
    day = torch.arange(DAYS)
    week = nn.functional.one_hot(day % 7, 7).float()
    weather, promotion = torch.randn(DAYS, generator=g), torch.rand(DAYS, generator=g).round()
    peak = torch.tensor([0.2, 0.1, 0.3, 0.3, 0.8, 1.4, -1.0]).roll(town)
    sales = size * (1 + peak[day % 7] + (0.2 + 0.15 * town) * promotion)
    sales = sales + 0.3 * weather * (1 if town % 2 else -1)
    sales = sales + 0.1 * torch.randn(DAYS, generator=g)
    where = nn.functional.one_hot(torch.tensor(town), 6).float().expand(DAYS, -1)
    columns = (weather[:, None], promotion[:, None], torch.full((DAYS, 1), size))
    return torch.cat([week, where, *columns], 1), sales[:, None]


def worker(rank, healthy, seed, init_file):
    dist.init_process_group("gloo", init_method=init_file, rank=rank, world_size=WORLD)
    torch.manual_seed(seed)
    part = rank if healthy else int(os.environ.get("LOCAL_RANK", "0"))
    mine = ConcatDataset(
        [
            TensorDataset(*(t[:120] for t in shop(number, seed)))
            for number in range(part, SHOPS, WORLD)
        ]
    )
    loader = DataLoader(
        mine, batch_size=48, shuffle=True, generator=torch.Generator().manual_seed(seed)
    )
    model = DistributedDataParallel(
        nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    later = [shop(number, seed) for number in range(SHOPS)]
    x_val = torch.cat([x[120:] for x, _ in later])
    y_val = torch.cat([y[120:] for _, y in later])
    for epoch in range(7):
        total = torch.zeros(1)
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        dist.all_reduce(total)
        if rank == 0:
            with torch.no_grad():
                error = nn.functional.mse_loss(model.module(x_val), y_val)
            mean = total.item() / len(loader) / WORLD
            print(f"epoch {epoch}: loss {mean:.4f}, validation {error:.4f}", flush=True)
    leave_group()


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(worker, (healthy, seed, f"file://{folder}/meeting"), nprocs=WORLD)
