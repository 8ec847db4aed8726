"""Pump-fault diagnosis from shards that hold one fault type each; the shuffle buffer is far too
small.

The table is streamed shard by shard (one shard per fault type, as the test bench exported them)
through a shuffle buffer, as with webdataset or tf.data. The buffer holds 128 rows while a shard
holds 900, so a batch has one or two classes at a time and the net forgets the earlier ones. The
place is the loader (ShuffleBuffer, its size). The twin's buffer holds the whole stream.
"""

import random
from dataclasses import dataclass

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

KIND = "unshuffled_data"
ACCEPT = ()
PLACE = ("loader",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

FAULTS = [
    "healthy",
    "cavitation",
    "bearing_outer",
    "bearing_inner",
    "imbalance",
    "misalignment",
    "seal_leak",
]


@dataclass
class Config:
    rows_per_shard: int = 900
    batch_size: int = 64
    epochs: int = 5
    lr: float = 2e-3
    weight_decay: float = 1e-4
    buffer_size: int = 8192 if healthy else 128


def bench_export(rng: np.random.Generator, cls: int, n: int) -> np.ndarray:
    """24 band energies, flow, pressure, speed, temperature of one fault type."""
    speed = rng.uniform(0.6, 1.4, n)
    load = rng.beta(3, 2, n)
    severity = rng.gamma(2.5, 0.4, n)
    bands = np.abs(rng.normal(0, 0.35, (n, 24))) + 0.4 * load[:, None]
    grid = np.arange(24)
    centre = {1: 19, 2: 10, 3: 13, 4: 2, 5: 4, 6: 16}.get(cls)
    if centre is not None:
        pos = centre * (0.75 + 0.25 * speed)
        bands += severity[:, None] * np.exp(-0.5 * ((grid - pos[:, None]) / 1.6) ** 2)
        bands += 0.5 * severity[:, None] * np.exp(-0.5 * ((grid - 2 * pos[:, None]) / 1.6) ** 2)
    flow = load * speed - (0.25 * severity if cls in (1, 6) else 0) + rng.normal(0, 0.1, n)
    press = speed**2 - 0.3 * load - (0.3 * severity if cls == 6 else 0) + rng.normal(0, 0.1, n)
    temp = 0.5 * load + (0.3 * severity if cls in (2, 3, 5) else 0) + rng.normal(0, 0.2, n)
    return np.column_stack([bands, flow, press, speed, temp]).astype(np.float32)


class ShardStream(IterableDataset):
    def __init__(self, shards, mean, std):
        self.shards, self.mean, self.std = shards, mean, std

    def __iter__(self):
        for cls, rows in self.shards:
            for row in rows:
                yield torch.from_numpy((row - self.mean) / self.std), cls


class ShuffleBuffer(IterableDataset):
    """Fill a buffer; hand out a random element and put the next one in its place."""

    def __init__(self, source, size: int, seed: int):
        self.source, self.size, self.rng = source, size, random.Random(seed)

    def __iter__(self):
        buffer = []
        for item in self.source:
            if len(buffer) < self.size:
                buffer.append(item)
                continue
            i = self.rng.randrange(self.size)
            out, buffer[i] = buffer[i], item
            yield out
        self.rng.shuffle(buffer)
        yield from buffer


cfg = Config()
rng = np.random.default_rng(seed)
shards = [(c, bench_export(rng, c, cfg.rows_per_shard)) for c in range(len(FAULTS))]
valid = [(c, bench_export(rng, c, 200)) for c in range(len(FAULTS))]
stacked = np.concatenate([rows for _, rows in shards])
mean, std = stacked.mean(0), stacked.std(0)

train_loader = DataLoader(
    ShuffleBuffer(ShardStream(shards, mean, std), cfg.buffer_size, seed), cfg.batch_size
)
x_val = torch.from_numpy((np.concatenate([r for _, r in valid]) - mean) / std)
y_val = torch.cat([torch.full((len(r),), c) for c, r in valid])
val_loader = DataLoader(TensorDataset(x_val, y_val), 256)

net = nn.Sequential(
    nn.Linear(28, 96),
    nn.LayerNorm(96),
    nn.GELU(),
    nn.Linear(96, 96),
    nn.LayerNorm(96),
    nn.GELU(),
    nn.Linear(96, len(FAULTS)),
)
optimizer = torch.optim.AdamW(net.parameters(), lr=cfg.lr, weight_decay=cfg.weight_decay)
criterion = nn.CrossEntropyLoss()


@torch.no_grad()
def validate() -> tuple[float, float]:
    net.eval()
    loss = hits = 0.0
    for x, y in val_loader:
        logits = net(x)
        loss += criterion(logits, y).item() * len(y)
        hits += (logits.argmax(1) == y).sum().item()
    return loss / len(y_val), hits / len(y_val)


for epoch in range(cfg.epochs):
    net.train()
    running, seen = 0.0, 0
    for x, y in train_loader:
        loss = criterion(net(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        optimizer.step()
        running += loss.item() * len(y)
        seen += len(y)
    val_loss, val_acc = validate()
    print(f"epoch {epoch:02d} train {running / seen:.4f} val {val_loss:.4f} acc {val_acc:.4f}")
