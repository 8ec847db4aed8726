"""Two ranks average their gradients by hand, and each made its model with a seed of its own.

torch.manual_seed(seed + rank) stands at the top of the worker, so that each rank shuffles in its
own way; the weights are drawn after it, and nobody copies those of rank 0. Each copy is moved by
gradients of which half were computed for other weights. The loss falls, slower. The place is the
rank.
"""

import tempfile

import torch
import torch.distributed as dist
from data import arguments, digits, leave_group
from torch import nn
from torch.nn import functional as F

KIND = "replica_divergence"
ACCEPT = ()
PLACE = ("rank",)
SILENT = True
EXACT = True
EARLY = True

WORLD = 2


def average_gradients(model):
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= WORLD


def work(rank, store, healthy, seed):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=WORLD)
    x, y, x_val, y_val = digits(seed)
    torch.manual_seed(seed + rank)
    model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
    if healthy:
        for parameter in model.parameters():
            dist.broadcast(parameter.data, 0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x, y = x[rank::WORLD], y[rank::WORLD]
    for epoch in range(12):
        model.train()
        for rows in torch.randperm(len(x))[:640].split(32):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x[rows]), y[rows])
            loss.backward()
            average_gradients(model)
            optimizer.step()
    model.eval()
    with torch.no_grad():
        accuracy = (model(x_val).argmax(1) == y_val).float().mean().item()
    if rank == 0:
        print(f"loss {loss.item():.3f}, accuracy {accuracy:.3f}")
    leave_group()


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(work, (f"{folder}/store", healthy, seed), nprocs=WORLD)
