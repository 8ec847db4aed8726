"""Tells families of programs from byte counts, streamed family by family through a shuffle buffer
of only 48 rows.

The files lie in one folder per family and are streamed in that order. The person did shuffle, by
a buffer like that of the big loaders, but left its size at 48 of 6,000 rows, so that a batch
still has one family only and the net forgets the first by the end of an epoch. The place is the
loader.
"""

import random

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

KIND = "unshuffled_data"
ACCEPT = ()
PLACE = ("loader", "input", "labels")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

FAMILIES, PER_FAMILY, BYTES = 8, 1000, 96
BUFFER = 8192 if healthy else 48


def histograms(rng):
    """Square roots of the share of each byte; families differ in habits of their compilers."""
    base = rng.dirichlet(np.full(BYTES, 1.0))
    rows, labels = [], []
    for family in range(FAMILIES):
        profile = base * np.exp(rng.normal(0, 0.3, BYTES))
        for _ in range(PER_FAMILY):
            share = profile * np.exp(rng.normal(0, 0.7, BYTES))
            rows.append(np.sqrt(rng.multinomial(800, share / share.sum()) / 800))
            labels.append(family)
    return np.array(rows), np.array(labels)


class Stream(IterableDataset):
    """Yields the rows as they lie on disk, through a buffer from which one is drawn at random."""

    def __init__(self, rows, labels, buffer_size):
        self.rows, self.labels, self.buffer_size = rows, labels, buffer_size
        self.random = random.Random(seed)

    def __iter__(self):
        buffer = []
        for pair in zip(self.rows, self.labels, strict=True):
            if len(buffer) < self.buffer_size:
                buffer.append(pair)
                continue
            place = self.random.randrange(len(buffer))
            yield buffer[place]
            buffer[place] = pair
        self.random.shuffle(buffer)
        yield from buffer


def main():
    rng = np.random.default_rng(seed)
    x, y = histograms(rng)
    held_out = np.arange(len(y)) % 4 == 3
    mean, std = x[~held_out].mean(0), x[~held_out].std(0)
    x = torch.tensor((x - mean) / std, dtype=torch.float32)
    y = torch.tensor(y)
    x_val, y_val = x[held_out], y[held_out]
    loader = DataLoader(Stream(x[~held_out], y[~held_out], BUFFER), batch_size=32)

    model = nn.Sequential(nn.Linear(BYTES, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, FAMILIES))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(4):
        model.train()
        seen = right = 0
        for inputs, labels in loader:
            logits = model(inputs)
            loss = loss_fn(logits, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen += len(labels)
            right += (logits.argmax(1) == labels).sum().item()
        model.eval()
        with torch.no_grad():
            logits = model(x_val)
            val_loss = loss_fn(logits, y_val).item()
            val = (logits.argmax(1) == y_val).float().mean().item()
        print(
            f"[{epoch + 1}/4] train acc {right / seen:.3f}"
            f" | val loss {val_loss:.3f} | val acc {val:.3f}"
        )


if __name__ == "__main__":
    main()
