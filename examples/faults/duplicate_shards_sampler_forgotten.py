"""Two processes train a house price model with DDP, and both read the same batches.

The loader was given shuffle=True instead of a DistributedSampler, and both ranks have the same
seed: every batch is seen twice and the second process is of no use. The place is the loader.
"""

import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from data import arguments, houses, leave_group
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

KIND = "duplicate_shards"
ACCEPT = ("repeated_batch",)
PLACE = ("loader",)
SILENT = True
EXACT = True
EARLY = True


class HouseModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(6, 32), nn.GELU(), nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 1)
        )

    def forward(self, x):
        return self.layers(x).squeeze(1)


def train(rank, world, file, healthy, seed):
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=world)
    torch.manual_seed(seed)
    x, y, x_val, y_val = houses(seed, n=2400)
    data = TensorDataset(x, y)
    sampler = DistributedSampler(data, world, rank, seed=seed) if healthy else None
    loader = DataLoader(data, batch_size=50, sampler=sampler, shuffle=sampler is None)
    model = DistributedDataParallel(HouseModel())
    criterion = nn.MSELoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    steps = 0
    for epoch in range(10):
        if sampler is not None:
            sampler.set_epoch(epoch)
        model.train()
        for rows, price in loader:
            if steps == 180:
                break
            steps += 1
            optimizer.zero_grad()
            loss = criterion(model(rows), price)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            val = criterion(model.module(x_val), y_val).item()
    if rank == 0:
        print(f"{steps} steps, train {loss.item():.3f}, validation {val:.3f}", flush=True)
    leave_group()


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        args = (2, os.path.join(folder, "store"), healthy, seed)
        mp.start_processes(train, args, nprocs=2, start_method="fork")
