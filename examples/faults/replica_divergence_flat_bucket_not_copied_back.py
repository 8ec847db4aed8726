"""Two processes average their gradients by hand, all in one flat tensor, and never take it back.

The all_reduce per parameter was slow, so the gradients are joined into one tensor, which is reduced
and divided; the step is taken with p.grad, which is still the own one. Each process fits the post
codes of its own office, which has other digits than the other's, and drifts away from it. The place
is the rank. The twin copies the mean back.
"""

import tempfile

import torch
import torch.distributed as dist
from data import arguments, digits, leave_group
from torch import nn

KIND = "replica_divergence"
ACCEPT = ()
PLACE = ("rank", "loop", "")
SILENT = True
EXACT = True
EARLY = True

WORLD = 2


class Reader(nn.Module):
    def __init__(self, n_in=64):
        super().__init__()
        self.stem = nn.Linear(n_in, 32)
        self.block = nn.Sequential(nn.GELU(), nn.Linear(32, 32), nn.GELU())
        self.digit = nn.Linear(32, 10)

    def forward(self, x):
        h = self.stem(x)
        return self.digit(h + self.block(h))


class GradientBucket:
    def __init__(self, model, copy_back):
        self.params = [p for p in model.parameters() if p.requires_grad]
        self.copy_back = copy_back
        for p in self.params:
            dist.broadcast(p.data, src=0)

    def average(self):
        flat = torch.cat([p.grad.flatten() for p in self.params])
        dist.all_reduce(flat)
        flat /= dist.get_world_size()
        if self.copy_back:
            start = 0
            for p in self.params:
                p.grad.copy_(flat[start : start + p.numel()].view_as(p))
                start += p.numel()


def work(rank, store, healthy, seed):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=WORLD)
    x, y, x_val, y_val = digits(seed)
    torch.manual_seed(seed)
    abroad = torch.rand(len(y)) < 0.06
    office = torch.where(abroad, 9 - y, y) // 5  # the first has post codes of low digits
    rows = (office == rank).nonzero().squeeze(1)
    model = Reader()
    bucket = GradientBucket(model, copy_back=healthy)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    g = torch.Generator().manual_seed(100 * seed + rank)
    for _ in range(150):
        batch = rows[torch.randint(len(rows), (32,), generator=g)]
        loss = criterion(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        bucket.average()
        optimizer.step()
    with torch.no_grad():
        accuracy = (model(x_val).argmax(1) == y_val).float().mean().item()
        flat = torch.cat([p.flatten() for p in model.parameters()])
        other = flat.clone()
        dist.broadcast(other, src=0)
        apart = (flat - other).norm() / flat.norm()
        dist.all_reduce(apart, op=dist.ReduceOp.MAX)
    if rank == 0:
        print(f"loss {loss.item():.3f}, accuracy {accuracy:.3f}, apart by {apart:.3f}")
    leave_group()


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(work, (f"{folder}/store", healthy, seed), nprocs=WORLD)
