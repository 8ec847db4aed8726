"""A digit classifier under DistributedDataParallel with shuffle=True where a sampler was to be.

Every rank seeds its generator alike, so that the weights begin alike, and shuffles the whole data
set by it: both ranks go through the same batches in the same order. The mean of two equal gradients
is that gradient; the second rank works for nothing. The place is the loader.
"""

import tempfile

import torch
import torch.distributed as dist
from data import arguments, digits, leave_group
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

KIND = "duplicate_shards"
ACCEPT = ()
PLACE = ("rank", "loader", "input*")
SILENT = True
EXACT = True
EARLY = True

WORLD = 2


def work(rank, store, healthy, seed):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=WORLD)
    torch.manual_seed(seed)
    x, y, x_val, y_val = digits(seed)
    x, x_val = x.view(-1, 1, 8, 8), x_val.view(-1, 1, 8, 8)
    data = TensorDataset(x, y)
    if healthy:
        sampler = DistributedSampler(data, WORLD, rank, seed=seed)
        loader = DataLoader(data, batch_size=32, sampler=sampler)
    else:
        loader = DataLoader(data, batch_size=32, shuffle=True)
    net = nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(12, 24, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(24 * 16, 10),
    )
    ddp = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(6 if healthy else 3):
        if healthy:
            sampler.set_epoch(epoch)
        ddp.train()
        for images, labels in loader:
            optimizer.zero_grad(set_to_none=True)
            loss = nn.functional.cross_entropy(ddp(images), labels)
            loss.backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            outputs = net(x_val)
            accuracy = (outputs.argmax(1) == y_val).float().mean().item()
            nn.functional.cross_entropy(outputs, y_val)
    if rank == 0:
        print(f"loss {loss.item():.3f}, accuracy {accuracy:.3f}")
    leave_group()


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(work, (f"{folder}/store", healthy, seed), nprocs=WORLD)
