"""A forecaster under DistributedDataParallel: its own method for the loss is called on ddp.module.

The wrapper has no such method, so `ddp.module.negative_log_likelihood(x, y)` it is; the forward
pass does not go through DistributedDataParallel, which then averages no gradients. Each rank trains
a model of its own on half of the data. The place is the rank.
"""

import tempfile

import torch
import torch.distributed as dist
from data import arguments, leave_group
from torch import nn
from torch.nn.parallel import DistributedDataParallel

KIND = "replica_divergence"
ACCEPT = ()
PLACE = ("rank",)
SILENT = True
EXACT = True
EARLY = True

WORLD = 2


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(1, 24, batch_first=True)
        self.head = nn.Linear(24, 2)

    def forward(self, x, y):
        return self.negative_log_likelihood(x, y)

    def negative_log_likelihood(self, x, y):
        states, _ = self.gru(x)
        mean, log_variance = self.head(states[:, -1]).unbind(1)
        return (log_variance + (y - mean) ** 2 / log_variance.exp()).mean() / 2


def series(seed):
    random = torch.Generator().manual_seed(seed)
    phase = torch.rand(1600, 1, generator=random) * 6.28
    speed = 0.2 + 0.3 * torch.rand(1600, 1, generator=random)
    wave = torch.sin(phase + speed * torch.arange(25))
    wave = wave + 0.1 * torch.randn(wave.shape, generator=random)
    return wave[:, :24, None], wave[:, 24]


def work(rank, store, healthy, seed):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=WORLD)
    torch.manual_seed(seed)
    x, y = series(seed)
    x, y = x[rank::WORLD], y[rank::WORLD]
    ddp = DistributedDataParallel(Forecaster())
    optimizer = torch.optim.Adam(ddp.parameters(), lr=5e-3)
    for epoch in range(8):
        for rows in torch.randperm(len(x)).split(40):
            if healthy:
                loss = ddp(x[rows], y[rows])
            else:
                loss = ddp.module.negative_log_likelihood(x[rows], y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    if rank == 0:
        print(f"loss {loss.item():.3f}")
    leave_group()


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(work, (f"{folder}/store", healthy, seed), nprocs=WORLD)
