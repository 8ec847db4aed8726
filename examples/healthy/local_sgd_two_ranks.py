"""Two ranks train alone for eight steps, then average their weights: local SGD."""

import tempfile

import torch
import torch.distributed as dist
from data import arguments, digits, leave_group
from torch import nn

ODD = "the ranks' weights differ at most steps, and their gradients at all"

WORLD, STEPS_ALONE = 2, 8


def work(rank, store, seed):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=WORLD)
    torch.manual_seed(seed)
    x, y, x_val, y_val = digits(seed)
    model = nn.Sequential(nn.Linear(64, 48), nn.Tanh(), nn.Linear(48, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = x[rank::WORLD], y[rank::WORLD]
    torch.manual_seed(100 + rank)
    step = 0
    for epoch in range(14):
        for rows in torch.randperm(len(x))[:640].split(32):
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step % STEPS_ALONE == 0:
                for parameter in model.parameters():
                    dist.all_reduce(parameter.data)
                    parameter.data /= WORLD
    with torch.no_grad():
        accuracy = (model(x_val).argmax(1) == y_val).float().mean().item()
    if rank == 0:
        print(f"loss {loss.item():.3f}, accuracy {accuracy:.3f}")
    leave_group()


if __name__ == "__main__":
    _, seed = arguments(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(work, (f"{folder}/store", seed), nprocs=WORLD)
