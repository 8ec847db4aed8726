"""Two processes train a model of lake temperatures together, but each starts from weights of its
own.

Each rank is seeded by its number before the network is built, so that they draw different
batches; rank 0's weights are never sent to the other. The gradients are averaged at every step by
hand, yet the replicas differ from the first step to the last. The place is the rank (every
parameter).
"""

import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from data import arguments, leave_group
from torch import nn

KIND = "replica_divergence"
ACCEPT = ()
PLACE = ("rank", "loop", "*weight", "*bias")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)
RANKS = 2


def lakes(n, generator):
    """Water temperature by day of the year, depth, air temperature, wind and size."""
    day = torch.rand(n, generator=generator) * 6.2832
    depth = 30 * torch.rand(n, generator=generator) ** 1.5
    wind = torch.rand(n, generator=generator) * 8
    size = torch.randn(n, generator=generator)
    air = 12 - 10 * day.cos() + 3 * torch.randn(n, generator=generator)
    mixed = torch.sigmoid((6 + wind + size - depth) / 2)
    water = (
        5
        + mixed * (0.75 * (air - 5)).clamp(min=-3)
        + 2 * (day - 1 - depth / 15).sin() * (1 - mixed)
    )
    water = water + 0.4 * torch.randn(n, generator=generator)
    x = torch.stack(
        [day.sin(), day.cos(), (depth - 12) / 9, (wind - 4) / 2.3, size, (air - 12) / 7.5], 1
    )
    return x, (water - 8) / 5


class Lake(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.lift = nn.Linear(6, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.out = nn.Linear(width, 1)
        for layer in (self.lift, *self.layers):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")

    def forward(self, x):
        h = torch.relu(self.lift(x))
        for layer in self.layers:
            h = torch.relu(layer(h))
        return self.out(h).squeeze(1)


def average_gradients(model):
    flat = torch.cat([parameter.grad.flatten() for parameter in model.parameters()])
    dist.all_reduce(flat)
    parts = (flat / RANKS).split([parameter.numel() for parameter in model.parameters()])
    for parameter, part in zip(model.parameters(), parts, strict=True):
        parameter.grad.copy_(part.view_as(parameter))


def worker(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=RANKS)
    data = torch.Generator().manual_seed(seed)
    x, y = lakes(2400, data)
    x_val, y_val = lakes(600, data)
    x, y = x[rank::RANKS], y[rank::RANKS]
    torch.manual_seed(1000 * seed + rank)
    model = Lake()
    if healthy:
        for parameter in model.parameters():
            dist.broadcast(parameter.data, 0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    for epoch in range(8):
        model.train()
        for rows in torch.randperm(len(x)).split(40):
            loss = (model(x[rows]) - y[rows]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            average_gradients(model)
            optimizer.step()
        model.eval()
        with torch.no_grad():
            mse = (model(x_val) - y_val).square().mean().item()
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f} val mse {mse:.4f}", flush=True)
    dist.barrier()
    leave_group()


if __name__ == "__main__":
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    mp.spawn(worker, args=(port,), nprocs=RANKS)
