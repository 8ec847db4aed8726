"""DistributedDataParallel as it is meant: a sampler, two micro-batches under no_sync, dropout."""

import contextlib
import tempfile

import torch
import torch.distributed as dist
from data import arguments, leave_group, waves
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

ODD = "losses, buffers and dropout differ between ranks; half of the gradients are not averaged"

WORLD = 2


def work(rank, store, seed):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=WORLD)
    x, y = waves(seed)
    x, x_val, y, y_val = x[:600], x[600:], y[:600], y[600:]
    data = TensorDataset(x.transpose(1, 2), y)
    sampler = DistributedSampler(data, WORLD, rank, seed=seed)
    loader = DataLoader(data, batch_size=15, sampler=sampler)
    torch.manual_seed(seed + 7 * rank)  # DistributedDataParallel copies the weights of rank 0
    net = nn.Sequential(
        nn.Conv1d(1, 16, 5, padding=2),
        nn.BatchNorm1d(16),
        nn.ReLU(),
        nn.AdaptiveAvgPool1d(10),
        nn.Flatten(),
        nn.Dropout(0.1),
        nn.Linear(160, 3),
    )
    ddp = DistributedDataParallel(net, broadcast_buffers=False)
    optimizer = torch.optim.Adam(ddp.parameters(), lr=3e-3)
    for epoch in range(10):
        sampler.set_epoch(epoch)
        ddp.train()
        batches = list(loader)
        for number, (series, kind) in enumerate(batches):
            is_last = number % 2 == 1 or number + 1 == len(batches)
            with contextlib.nullcontext() if is_last else ddp.no_sync():
                loss = nn.functional.cross_entropy(ddp(series), kind)
                (loss / 2).backward()
            if is_last:
                optimizer.step()
                optimizer.zero_grad()
        net.eval()
        with torch.no_grad():
            outputs = net(x_val.transpose(1, 2))
            nn.functional.cross_entropy(outputs, y_val)
            accuracy = (outputs.argmax(1) == y_val).float().mean().item()
    if rank == 0:
        print(f"loss {loss.item():.3f}, accuracy {accuracy:.3f}")
    leave_group()


if __name__ == "__main__":
    _, seed = arguments(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(work, (f"{folder}/store", seed), nprocs=WORLD)
