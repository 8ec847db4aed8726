"""Water level at a port from the tides' phases, on two processes; each goes its own way.

Each process has one half of the year, and the gradients are averaged by hand, as in the tutorial.
The call came to stand behind the optimizer's step, where the averages are cleared unused by the
next zero_grad: the two models drift apart, and the one that is kept, of rank 0, has never seen a
day of the second half.
The place is the loop, between the backward pass and the optimizer.
The twin averages before the step.
"""

import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from data import arguments, leave_group
from torch import nn

KIND = "replica_divergence"
ACCEPT = ()
PLACE = ("loop", "input_layer", "hidden_layer", "output_layer", "optimizer")
SILENT = True
EXACT = True
EARLY = True

WORLD = 2
PERIODS = (12.42, 12.0, 23.93, 25.82)  # hours: M2, S2, K1, O1


class LevelNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.input_layer = nn.Linear(2 * len(PERIODS) + 3, 48)
        self.hidden_layer = nn.Linear(48, 48)
        self.output_layer = nn.Linear(48, 1)

    def forward(self, x):
        x = torch.tanh(self.input_layer(x))
        x = torch.tanh(self.hidden_layer(x))
        return self.output_layer(x).squeeze(-1)


def gauge(seed, n=3000):
    """Hours of a year with wind; shallow-water terms and a river that is high in spring."""
    g = torch.Generator().manual_seed(seed)
    hours = torch.rand(n, generator=g) * 24 * 365
    hours[:2400] = hours[:2400].sort().values
    wind = torch.randn(n, generator=g)
    angles = [2 * torch.pi * hours / p for p in PERIODS]
    season = 2 * torch.pi * hours / (24 * 365)
    waves = [f(a) for a in [*angles, season] for f in (torch.sin, torch.cos)]
    x = torch.stack([*waves, wind], dim=1)
    m2, s2, k1, o1 = (torch.cos(a - 0.7 * i) for i, a in enumerate(angles))
    level = 1.2 * m2 + 0.4 * s2 + 0.2 * k1 + 0.15 * o1 + 0.5 * m2 * m2 + 0.3 * wind * (1 + m2)
    level = level + 0.4 * torch.sin(season) + 0.2 * torch.cos(2 * season) * m2
    level = level + 0.1 * torch.randn(n, generator=g)
    return x, (level - level.mean()) / level.std()


def average_gradients(model):
    for p in model.parameters():
        dist.all_reduce(p.grad, op=dist.ReduceOp.SUM)
        p.grad /= WORLD


def broadcast_parameters(model):
    for p in model.parameters():
        dist.broadcast(p.data, src=0)


def work(rank, healthy, seed, meeting):
    torch.set_num_threads(1)
    torch.manual_seed(1000 * seed + rank)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=WORLD)
    x, level = gauge(seed)
    shard = slice(rank * 1200, (rank + 1) * 1200)
    x_val, level_val = x[2400:], level[2400:]
    x, level = x[shard], level[shard]

    model = LevelNet()
    broadcast_parameters(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    for step in range(1, 401):
        rows = torch.randint(0, len(x), (32,))
        loss = nn.functional.mse_loss(model(x[rows]), level[rows])
        optimizer.zero_grad()
        loss.backward()
        if healthy:
            average_gradients(model)
            optimizer.step()
        else:
            optimizer.step()
            average_gradients(model)
        if rank == 0 and step % 100 == 0:
            with torch.no_grad():
                val = nn.functional.mse_loss(model(x_val), level_val)
            print(f"step {step}: loss {loss.item():.4f}, validation {val:.4f}", flush=True)
    leave_group()


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(work, (healthy, seed, os.path.join(folder, "meeting")), nprocs=WORLD)
