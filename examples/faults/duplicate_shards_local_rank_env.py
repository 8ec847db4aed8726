"""Two ranks train a recogniser of spoken digits on shards stored by studio; both ranks read the
shards of rank 0.

The reader takes its rank from the environment variable LOCAL_RANK with default 0, which nobody
sets when the processes are started by torch.multiprocessing; the studios of the other shards are
never seen. The place is the loader / the ranks.
"""

import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from data import arguments, leave_group
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP  # noqa: N817

KIND = "duplicate_shards"
ACCEPT = ("duplicate_batches",)
PLACE = ("loader", "rank", "input*", "loop")
SILENT = True
EXACT = True
EARLY = True

WORLD, STUDIOS, DIGITS, FRAMES, BANDS = 2, 4, 10, 20, 16


def shard(studio, n, seed, g=None):
    """Recordings of one studio: its microphone (a filter over the bands) and its speakers' pitch differ from the others'."""  # noqa: E501
    base = torch.Generator().manual_seed(77 + seed)
    templates = 2.2 * torch.randn(DIGITS, 5, BANDS, generator=base)
    templates = F.interpolate(templates.transpose(1, 2), size=FRAMES, mode="linear").transpose(1, 2)
    filters = 1.0 * torch.randn(STUDIOS, BANDS, generator=base)
    shift = (0, 3, 6, 9)[studio]
    y = torch.randint(0, DIGITS, (n,), generator=g)
    x = templates[y].roll(shift, dims=2) + filters[studio]
    x = x * (0.8 + 0.4 * torch.rand(n, 1, 1, generator=g)) + 1.6 * torch.randn(
        n, FRAMES, BANDS, generator=g
    )
    return x, y


class ShardReader:
    """Yields batches of the shards that belong to this rank: rank, rank + world, ..."""

    def __init__(self, shards, batch_size, world, rank=None, seed=0):
        rank = int(os.environ.get("LOCAL_RANK", 0)) if rank is None else rank  # noqa: PLW1508
        own = shards[rank::world]
        self.x, self.y = torch.cat([s[0] for s in own]), torch.cat([s[1] for s in own])
        self.batch_size, self.seed, self.epoch = batch_size, seed, 0

    def __iter__(self):
        g = torch.Generator().manual_seed(self.seed + self.epoch)
        self.epoch += 1
        for rows in torch.randperm(len(self.x), generator=g).split(self.batch_size):
            yield self.x[rows], self.y[rows]


class DigitNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.front = nn.Conv1d(BANDS, 32, 3, padding=1)
        self.rnn = nn.GRU(32, 32, batch_first=True)
        self.drop = nn.Dropout(0.2)
        self.out = nn.Linear(64, DIGITS)

    def forward(self, x):
        h = F.relu(self.front(x.transpose(1, 2))).transpose(1, 2)
        h, last = self.rnn(h)
        return self.out(self.drop(torch.cat([h.mean(1), last[0]], 1)))


def worker(rank, port, healthy, seed):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(port)
    dist.init_process_group("gloo", rank=rank, world_size=WORLD)
    torch.manual_seed(seed)
    g = torch.Generator().manual_seed(5000 + seed)
    shards = [shard(s, 400, seed, g) for s in range(STUDIOS)]
    held = [shard(s, 150, seed, g) for s in range(STUDIOS)]
    xv, yv = torch.cat([h[0] for h in held]), torch.cat([h[1] for h in held])
    mean, std = (
        torch.cat([s[0] for s in shards]).mean((0, 1)),
        torch.cat([s[0] for s in shards]).std((0, 1)),
    )
    shards = [((x - mean) / std, y) for x, y in shards]
    xv = (xv - mean) / std

    reader = ShardReader(shards, 32, WORLD, rank=rank if healthy else None, seed=seed)
    model = DDP(DigitNet())
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    epochs = 8
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, epochs)
    for epoch in range(epochs):
        model.train()
        total = count = 0
        for x, y in reader:
            loss = F.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            opt.step()
            total, count = total + loss.item(), count + 1
        sched.step()
        model.eval()
        with torch.no_grad():
            logits = model.module(xv)
        if rank == 0:
            right = (logits.argmax(1) == yv).float().view(STUDIOS, -1).mean(1)
            print(
                f"epoch {epoch} train {total / count:.3f} val {F.cross_entropy(logits, yv).item():.3f} acc {right.mean():.3f} "  # noqa: E501
                f"by studio " + " ".join(f"{v:.2f}" for v in right.tolist()),
                flush=True,
            )
    leave_group()


def main():
    healthy, seed = arguments(__doc__)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(worker, args=(port, healthy, seed), nprocs=WORLD, join=True)


if __name__ == "__main__":
    main()
