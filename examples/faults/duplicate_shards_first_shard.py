"""Two processes train a network on patients of two hospitals, one file each; both read the first
file.

The shard is chosen by an environment variable that nobody sets, so it is 0 on both ranks: both
see the same batches, and the patients of the second hospital are never trained on. The place is
the loader of the ranks.
"""

import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from data import arguments, leave_group
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

KIND = "duplicate_shards"
ACCEPT = ()
PLACE = ("loader", "rank", "input*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

WORLD = 2


def hospital(number, n, seed):
    """Twelve measurements; the second hospital has older patients and another device."""
    g = torch.Generator().manual_seed(10 * seed + number)
    x = torch.randn(n, 12, generator=g)
    if number == 1:
        x[:, 0] += 1.5
        x[:, 1] = -x[:, 1] - 1.0
    risk = 1.2 * x[:, 2] - 0.9 * x[:, 3] * x[:, 4] + 0.8 * x[:, 5].abs() - 0.6
    risk = risk + (1.5 * x[:, 1] if number == 0 else -1.5 * (x[:, 1] + 1.0))
    y = (torch.rand(n, generator=g) < torch.sigmoid(2 * risk)).float().unsqueeze(1)
    return x, y


def main(rank, port, healthy, seed):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(port)
    dist.init_process_group("gloo", rank=rank, world_size=WORLD)
    torch.manual_seed(seed)

    shard = rank if healthy else int(os.environ.get("NODE_RANK", "0"))
    x, y = hospital(shard, 2000, seed)
    loader = DataLoader(TensorDataset(x, y), batch_size=40, shuffle=True)
    val = [hospital(i, 500, seed + 100) for i in range(WORLD)]
    val_x, val_y = torch.cat([v[0] for v in val]), torch.cat([v[1] for v in val])

    net = nn.Sequential(
        nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 24), nn.ReLU(), nn.Linear(24, 1)
    )
    model = DistributedDataParallel(net)
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(6):
        model.train()
        running = 0.0
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            optimizer.step()
            running += loss.item()
        model.eval()
        with torch.no_grad():
            logits = net(val_x)
            val_loss = criterion(logits, val_y).item()
            accuracy = ((logits > 0) == (val_y > 0.5)).float().mean().item()
        if rank == 0:
            print(
                f"epoch {epoch + 1}: train {running / len(loader):.4f} "
                f"val {val_loss:.4f} acc {accuracy:.4f}",
                flush=True,
            )
    leave_group()


if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(main, args=(port, healthy, seed), nprocs=WORLD)
