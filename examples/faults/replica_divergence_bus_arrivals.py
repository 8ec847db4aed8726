"""Two processes learn the delay of buses and share their gradients; they start from other weights.

Each rank seeds its generator with its own number, so that they draw other batches, and then builds
the network, without sending rank 0's weights round. The gradients are averaged by hand, but they
belong to two different networks.
The place is the start of the replicas (the seed before the network is built).
The twin sends the weights of rank 0 to all before the first step.
"""

import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from data import arguments, leave_group
from torch import nn

KIND = "replica_divergence"
ACCEPT = ()
PLACE = ("loop", "net", "net.0", "net.2", "net.4", "optimizer")
SILENT = True
EXACT = True
EARLY = True

WORLD = 2


def trips(n, seed):
    """Hour, stops passed, passengers, delay at the start, rain, line; delay in minutes."""
    g = torch.Generator().manual_seed(seed)
    hour = 5 + 18 * torch.rand(n, generator=g)
    stops = torch.randint(1, 25, (n,), generator=g).float()
    people, rain, early = torch.randn(3, n, generator=g)
    line = torch.randint(0, 5, (n,), generator=g)
    rush = torch.exp(-((hour - 8) ** 2) / 2) + torch.exp(-((hour - 17) ** 2) / 4)
    slope = torch.tensor([0.1, 0.2, 0.05, 0.3, 0.15])[line]
    delay = early + stops * slope * (0.3 + rush) + 0.4 * people * rush
    delay = delay + 0.5 * torch.relu(rain) + 0.3 * torch.randn(n, generator=g)
    x = torch.stack([(hour - 14) / 5.2, (stops - 12.5) / 7, people, rain, early], 1)
    return torch.cat([x, nn.functional.one_hot(line, 5).float()], 1), (delay[:, None] - 2) / 2


def average_gradients(net):
    together = torch.cat([p.grad.flatten() for p in net.parameters()])
    dist.all_reduce(together)
    together /= WORLD
    parts = together.split([p.numel() for p in net.parameters()])
    for p, part in zip(net.parameters(), parts, strict=False):
        p.grad.copy_(part.view_as(p))


def worker(rank, healthy, seed, init_file):
    dist.init_process_group("gloo", init_method=init_file, rank=rank, world_size=WORLD)
    torch.manual_seed(1000 * seed + rank)
    x, y = trips(4000, seed)
    x, y = x[rank::WORLD], y[rank::WORLD]
    x_val, y_val = trips(1000, seed + 31)
    net = nn.Sequential(
        nn.Linear(10, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1)
    )
    if healthy:
        for p in net.parameters():
            dist.broadcast(p.data, src=0)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    for epoch in range(12):
        for rows in torch.randperm(len(x)).split(80):
            loss = nn.functional.mse_loss(net(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            average_gradients(net)
            optimizer.step()
        if epoch % 3 == 2:
            with torch.no_grad():
                error = nn.functional.mse_loss(net(x_val), y_val)
            if rank == 0:
                print(f"epoch {epoch + 1}: loss {loss.item():.4f}, val {error:.4f}", flush=True)
    leave_group()


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(worker, (healthy, seed, f"file://{folder}/meeting"), nprocs=WORLD)
