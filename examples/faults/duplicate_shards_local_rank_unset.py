"""Trains a CNN with two DDP processes that take their share of the digits by an environment
variable nobody has set.

os.environ.get("LOCAL_RANK", 0) is 0 in processes started by mp.spawn, so both ranks train on the
first half of the data, in the same order; the second half is never seen. The twin uses the rank
that spawn gives to the function. The place is the loader or the ranks.
"""

import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from data import arguments, images, leave_group
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Subset, TensorDataset

KIND = "duplicate_shards"
ACCEPT = ()
PLACE = ("loader", "rank")
SILENT = True
EXACT = True
EARLY = True


def build_model():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(128, 10),
    )


def worker(rank, world, store, healthy, seed):
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
    x, y, x_val, y_val = images(seed)
    part = rank if healthy else int(os.environ.get("LOCAL_RANK", "0"))
    per_rank = len(x) // world
    shard = Subset(TensorDataset(x, y), range(part * per_rank, (part + 1) * per_rank))
    loader = DataLoader(shard, batch_size=24, shuffle=True, drop_last=True)

    model = DistributedDataParallel(build_model())
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(1, 11):
        model.train()
        total = 0.0
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            out = model.module(x_val)
            val, acc = criterion(out, y_val).item(), (out.argmax(1) == y_val).float().mean().item()
        if epoch % 2 == 0:
            print(
                f"rank {rank} epoch {epoch} train {total / len(loader):.4f} "
                f"val {val:.4f} acc {acc:.3f}",
                flush=True,
            )
    leave_group()


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        store = os.path.join(folder, "store")
        mp.spawn(worker, args=(2, store, healthy, seed), nprocs=2)
