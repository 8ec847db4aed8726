"""Two processes learn to read digits together; the loop calls the bare model, not the DDP one.

The model is wrapped by DistributedDataParallel, but the loop, written before there were two
processes, still calls `model`. The gradients are then never averaged: each process trains a
copy of its own on its half of the data, and only the first one's is kept.
The place is the loop (the call of the model), or the gradients of all parameters.
The twin calls the wrapped model.
"""

import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from data import arguments, images, leave_group
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

KIND = "replica_divergence"
ACCEPT = ()
PLACE = ("loop", "optimizer", "0", "3", "7")
SILENT = True
EXACT = True
EARLY = True


def build():
    return nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(12, 24, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(96, 10),
    )


def worker(rank, world, rendezvous, healthy, seed):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=world)
    torch.manual_seed(seed)
    x, y, x_val, y_val = images(seed)
    data = TensorDataset(x[:320], y[:320])
    sampler = DistributedSampler(data, world, rank, shuffle=True, seed=seed)
    loader = DataLoader(data, batch_size=16, sampler=sampler)

    model = build()
    ddp = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.03, momentum=0.9)
    net = ddp if healthy else model
    for epoch in range(12):
        sampler.set_epoch(epoch)
        ddp.train()
        total = 0.0
        for pixels, digit in loader:
            loss = F.cross_entropy(net(pixels), digit)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() / len(loader)
        if epoch % 3 == 2:
            ddp.eval()
            with torch.no_grad():
                scores = model(x_val)
            right = (scores.argmax(1) == y_val).float().mean().item()
            held = F.cross_entropy(scores, y_val).item()
            print(f"rank {rank} epoch {epoch + 1}: {total:.3f} val {held:.4f} right {right:.3f}")
    dist.barrier()
    leave_group()


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        rendezvous = os.path.join(folder, "rendezvous")
        mp.spawn(worker, args=(2, rendezvous, healthy, seed), nprocs=2)
