"""Each of two ranks holds half of a hidden layer, and both see all of each batch."""

import tempfile

import torch
import torch.distributed as dist
from data import arguments, cancer, leave_group
from torch import nn

ODD = "the ranks are given the same batches, and weights of one name differ"

WORLD = 2


class SumOverRanks(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Halved(nn.Module):
    def __init__(self, rank, seed):
        super().__init__()
        torch.manual_seed(seed)
        self.norm = nn.LayerNorm(30)
        torch.manual_seed(1000 * seed + rank + 1)
        self.up = nn.Linear(30, 16)
        self.down = nn.Linear(16, 2, bias=False)

    def forward(self, x):
        return SumOverRanks.apply(self.down(torch.relu(self.up(self.norm(x)))))


def work(rank, store, seed):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=WORLD)
    x, y, x_val, y_val = cancer(seed)
    model = Halved(rank, seed)
    torch.manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(12):
        for rows in torch.randperm(len(x)).split(32):
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows].long())
            optimizer.zero_grad()
            loss.backward()
            for parameter in model.norm.parameters():  # both halves pass it
                dist.all_reduce(parameter.grad)
            optimizer.step()
    with torch.no_grad():
        accuracy = (model(x_val).argmax(1) == y_val).float().mean().item()
    if rank == 0:
        print(f"loss {loss.item():.3f}, accuracy {accuracy:.3f}")
    leave_group()


if __name__ == "__main__":
    _, seed = arguments(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(work, (f"{folder}/store", seed), nprocs=WORLD)
