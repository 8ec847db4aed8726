"""A classifier gets its new head after it was put into DistributedDataParallel.

DistributedDataParallel averages the gradients of the parameters that it was given; the head came
later. Each rank fits a head of its own to a body that they share, and find_unused_parameters, which
was set because of an error about the old head, hides it. The place is the head.
"""

import tempfile

import torch
import torch.distributed as dist
from data import arguments, leave_group, wine
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

KIND = "replica_divergence"
ACCEPT = ()
PLACE = ("rank", "*head*")
SILENT = True
EXACT = True
EARLY = True

WORLD = 2


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(13, 24), nn.Tanh())
        self.head = nn.Linear(24, classes)

    def forward(self, x):
        return self.head(self.body(x))


def work(rank, store, healthy, seed):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=WORLD)
    torch.manual_seed(seed)
    x, y, x_val, y_val = wine(seed)
    data = TensorDataset(x, y)
    sampler = DistributedSampler(data, WORLD, rank, seed=seed)
    loader = DataLoader(data, batch_size=11, sampler=sampler)
    net = Net(100)  # as it was trained before, for a hundred classes
    if healthy:
        net.head = nn.Linear(24, 3)
    ddp = DistributedDataParallel(net, find_unused_parameters=not healthy)
    if not healthy:
        ddp.module.head = nn.Linear(24, 3)
    optimizer = torch.optim.AdamW(ddp.parameters(), lr=5e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(25):
        sampler.set_epoch(epoch)
        for features, cultivar in loader:
            optimizer.zero_grad()
            loss = criterion(ddp(features), cultivar)
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        accuracy = (net(x_val).argmax(1) == y_val).float().mean().item()
    if rank == 0:
        print(f"loss {loss.item():.3f}, accuracy {accuracy:.3f}")
    leave_group()


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(work, (f"{folder}/store", healthy, seed), nprocs=WORLD)
