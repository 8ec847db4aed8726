"""Two processes train one model of concrete's strength, each from initial weights of its own.

The gradients are averaged by hand with all_reduce. Each rank seeds its generator with its number
so as to draw other batches, and does so before it builds the model; nobody sends the weights of
rank 0 to the others. The mean of two gradients that belong to different networks suits neither.
The place is the model's start in the loop of each rank.
The twin broadcasts the weights first.
"""

import multiprocessing
import tempfile

import torch
import torch.distributed as dist
from data import arguments, leave_group
from torch import nn

KIND = "replica_divergence"
ACCEPT = ()
PLACE = ("loop", "optimizer", "net.0", "0", "2")
SILENT = True
EXACT = True
EARLY = True


def mixes(n, g):
    """Cement, water, age and so on of a mix, and its strength (standardised)."""
    x = torch.randn(n, 6, generator=g)
    strength = x[:, 0] - x[:, 1] + 0.8 * torch.tanh(2 * x[:, 2]) + 0.6 * x[:, 3] * x[:, 0]
    strength = strength + 0.5 * torch.sin(2 * x[:, 4])
    return x, (strength + 0.1 * torch.randn(n, generator=g)) / 1.9


def average_gradients(net, world):
    for parameter in net.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= world


def train(rank, world, meeting, healthy, seed):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=world)
    torch.manual_seed(1000 * seed + rank)
    net = nn.Sequential(nn.Linear(6, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 1))
    if healthy:
        for parameter in net.parameters():
            dist.broadcast(parameter.data, src=0)
    x, y = mixes(3000, torch.Generator().manual_seed(seed))
    share, x_val, y_val = range(rank, 2400, world), x[2400:], y[2400:]
    x, y = x[share], y[share]
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for epoch in range(12):
        for rows in torch.randperm(len(x)).split(40):
            loss = nn.functional.mse_loss(net(x[rows]).squeeze(1), y[rows])
            optimizer.zero_grad()
            loss.backward()
            average_gradients(net, world)
            optimizer.step()
        if rank == 0 and epoch % 3 == 2:
            with torch.no_grad():
                val = nn.functional.mse_loss(net(x_val).squeeze(1), y_val).item()
            print(f"epoch {epoch + 1}: loss {loss.item():.4f}, val {val:.4f}", flush=True)
    leave_group()


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        settings = (2, f"{folder}/meeting", healthy, seed)
        other = multiprocessing.get_context("spawn").Process(target=train, args=(1, *settings))
        other.start()
        train(0, *settings)
        other.join()
