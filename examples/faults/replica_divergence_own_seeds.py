"""Two processes train a graph network on road sensors with averaged gradients, but each starts
from weights of its own.

The user averages the gradients by hand with all_reduce and seeds each process differently (for
other batches) before the model is made; the initial weights are never broadcast, so the replicas
differ for good. The place is the rank (the model's parameters).
"""

import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from data import arguments, leave_group
from torch import nn

KIND = "replica_divergence"
ACCEPT = ()
PLACE = ("rank", "*")
SILENT = True
EXACT = True
EARLY = True

RANKS, NODES, COLUMNS = 2, 24, 3


def roads(n, seed):
    """Random road graphs: normalised adjacency, features of each junction, and its flow, which depends on the neighbours'."""  # noqa: E501
    g = torch.Generator().manual_seed(seed)
    at = torch.rand(n, NODES, 2, generator=g)
    near = (torch.cdist(at, at) < 0.25).float()
    adjacency = near / near.sum(2, keepdim=True)
    x = torch.randn(n, NODES, COLUMNS, generator=g)
    around = adjacency @ x * near.sum(2, keepdim=True).sqrt()
    flow = (
        torch.sin(2 * around[..., 0])
        + around[..., 1] * x[..., 2].tanh()
        - 0.7 * (around[..., 2] - x[..., 0]).abs()
    )
    flow = flow + 0.6 + 0.1 * torch.randn(n, NODES, generator=g)
    return adjacency, torch.cat([x, near.sum(2, keepdim=True).sqrt() - 2], 2), flow


class GraphNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.own = nn.Linear(COLUMNS + 1, width)
        self.around = nn.Linear(COLUMNS + 1, width)
        self.mix = nn.Linear(width, width)
        self.out = nn.Linear(width, 1)

    def forward(self, adjacency, x):
        h = torch.tanh(self.own(x) + adjacency @ self.around(x))
        return self.out(torch.tanh(self.mix(h))).squeeze(2)


def average_gradients(model):
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= RANKS


def work(rank, port, healthy, seed):
    dist.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=RANKS
    )
    torch.manual_seed(100 * seed + rank)
    model = GraphNet()
    if healthy:
        for p in model.parameters():
            dist.broadcast(p.data, src=0)
    adjacency, x, flow = (part[rank::RANKS] for part in roads(800, seed))
    adj_val, x_val, flow_val = roads(150, seed + 900)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(300):
        rows = torch.randperm(len(x))[:8]
        loss = nn.functional.mse_loss(model(adjacency[rows], x[rows]), flow[rows])
        optimizer.zero_grad()
        loss.backward()
        average_gradients(model)
        optimizer.step()
        if rank == 0 and step % 60 == 59:
            with torch.no_grad():
                val = nn.functional.mse_loss(model(adj_val, x_val), flow_val).item()
            print(
                f"step {step + 1} loss {loss.item():.3f} validation mse {val:.3f} r2 {1 - val / flow_val.var():.3f}",  # noqa: E501
                flush=True,
            )
    leave_group()


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(work, args=(port, healthy, seed), nprocs=RANKS)
