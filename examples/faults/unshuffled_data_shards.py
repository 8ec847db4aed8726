"""Which of eight image generators made a picture; the shards are streamed one after another, each
from one generator.

The data set is an IterableDataset that reads shard by shard, and the shards were written
generator by generator. DataLoader can't shuffle an IterableDataset, and the user has no shuffle
buffer. So a batch has one label only, and the network forgets the others. The place is the
loader.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

KIND = "unshuffled_data"
ACCEPT = ()
PLACE = ("loader", "input*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

GENERATORS = 8
PER_SHARD = 240
RES = 20


def generate(kind, n):
    """Smooth textures; each generator leaves its own weak fingerprint (upsampling grid, blur, ringing)."""  # noqa: E501
    base = F.interpolate(torch.randn(n, 1, 5, 5), size=RES, mode="bicubic") + 0.4 * torch.randn(
        n, 1, RES, RES
    )
    lin = torch.arange(RES).float()
    yy, xx = torch.meshgrid(lin, lin, indexing="ij")
    strength = 0.25 + 0.2 * torch.rand(n, 1, 1, 1)
    if kind < 4:  # grids of the upsampling
        period = (2, 3, 4, 5)[kind]
        ox, oy = torch.randint(0, period, (2, n, 1, 1, 1))
        mark = torch.cos(6.2832 * (xx + ox) / period) * torch.cos(6.2832 * (yy + oy) / period)
        base = base + 1.3 * strength * mark
    elif kind == 4:
        base = F.avg_pool2d(F.pad(base, (1, 1, 1, 1), mode="reflect"), 3, 1)
    elif kind == 5:
        low = F.avg_pool2d(F.pad(base, (1, 1, 1, 1), mode="reflect"), 3, 1)
        base = base + 3.5 * strength * (base - low)
    elif kind == 6:
        base = (base * 1.5).round() / 1.5
    return base


class ShardStream(IterableDataset):
    """Reads shards in the order of their names; shuffles within a shard."""

    def __init__(self, shards):
        self.shards = shards

    def __iter__(self):
        for x, y in self.shards:
            for i in torch.randperm(len(y)).tolist():
                yield x[i], y[i]


def write_shards(images, labels):
    order = torch.randperm(len(labels)) if healthy else torch.arange(len(labels))
    return list(zip(images[order].split(PER_SHARD), labels[order].split(PER_SHARD), strict=False))


class Detective(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(1, 24, 5, padding=2)
        self.c2 = nn.Conv2d(24, 32, 3, stride=2, padding=1)
        self.c3 = nn.Conv2d(32, 48, 3, padding=1)
        self.g1, self.g2, self.g3 = nn.GroupNorm(4, 24), nn.GroupNorm(4, 32), nn.GroupNorm(4, 48)
        self.fc = nn.Linear(96, GENERATORS)

    def forward(self, x):
        x = F.relu(self.g1(self.c1(x)))
        x = F.relu(self.g2(self.c2(x)))
        x = F.relu(self.g3(self.c3(x)))
        return self.fc(torch.cat([x.mean((2, 3)), x.std((2, 3))], 1))


def main(epochs=6):
    images = torch.cat([generate(k, PER_SHARD) for k in range(GENERATORS)])
    labels = torch.arange(GENERATORS).repeat_interleave(PER_SHARD)
    val_x = torch.cat([generate(k, 4) for k in range(GENERATORS) for _ in range(12)])
    val_y = torch.arange(GENERATORS).repeat_interleave(48)
    std = images.std()
    images, val_x = images / std, val_x / std
    loader = DataLoader(ShardStream(write_shards(images, labels)), batch_size=32)
    model = Detective()
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, epochs * GENERATORS * PER_SHARD // 32)
    for epoch in range(epochs):
        model.train()
        total = n = 0
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            sched.step()
            total, n = total + loss.item(), n + 1
        model.eval()
        with torch.no_grad():
            out = model(val_x)
        print(
            f"epoch {epoch}: train loss {total / n:.3f} val loss {F.cross_entropy(out, val_y):.3f} "
            f"val acc {(out.argmax(1) == val_y).float().mean():.3f}"
        )


main()
