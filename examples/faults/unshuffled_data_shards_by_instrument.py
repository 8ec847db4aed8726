"""Instruments from the harmonics of single notes, streamed from shards; only the order of the
shards is shuffled.

The writer made one shard after the other while walking the folders, so a shard holds notes of one
instrument only. The stream shuffles the shards and reads each from front to back; the buffer that
should mix samples has size 1. Batch after batch shows a single instrument, and the net follows the
last. The place is the loop over the data. The twin's buffer holds all 2,400 notes.
"""

import random

import torch
from data import arguments
from torch import nn

KIND = "unshuffled_data"
ACCEPT = ()
PLACE = ("loader", "loop", "input*")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
INSTRUMENTS, HARMONICS, BATCH = 6, 20, 25
STREAM = {"shuffle_shards": True, "buffer": 2400 if healthy else 1}


def notes(instrument, count, envelopes):
    """Log strengths of the harmonics: the instrument's envelope, moved by pitch and loudness."""
    pitch, loud = torch.rand(count, 1), torch.randn(count, 1)
    tilt = -torch.arange(HARMONICS) / HARMONICS * (1 + pitch) + 0.5 * loud
    return envelopes[instrument] * (0.6 + 0.8 * pitch) + tilt + 0.8 * torch.randn(count, HARMONICS)


def write_shards(envelopes, shards=1, size=400):
    return [
        [(x, instrument) for x in notes(instrument, size, envelopes)]
        for instrument in range(INSTRUMENTS)
        for _ in range(shards)
    ]


def stream(shards, shuffle_shards, buffer):
    """Samples of all shards, through a buffer from which they leave in random order."""
    order = random.sample(shards, len(shards)) if shuffle_shards else shards
    waiting = []
    for shard in order:
        for sample in shard:
            waiting.append(sample)
            if len(waiting) >= buffer:
                yield waiting.pop(random.randrange(len(waiting)))
    random.shuffle(waiting)
    yield from waiting


def batched(samples):
    batch = []
    for sample in samples:
        batch.append(sample)
        if len(batch) == BATCH:
            xs, ys = zip(*batch, strict=False)
            yield torch.stack(xs), torch.tensor(ys)
            batch = []


envelopes = 0.6 * torch.randn(INSTRUMENTS, HARMONICS)
shards = write_shards(envelopes)
x_val = torch.cat([notes(i, 80, envelopes) for i in range(INSTRUMENTS)])
y_val = torch.arange(INSTRUMENTS).repeat_interleave(80)
everything = torch.stack([x for shard in shards for x, _ in shard])
center, spread = everything.mean(0), everything.std(0)

model = nn.Sequential(
    nn.Linear(HARMONICS, 64), nn.ReLU(), nn.Dropout(0.25), nn.Linear(64, INSTRUMENTS)
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.08, momentum=0.9, weight_decay=1e-3)
criterion = nn.CrossEntropyLoss()
epochs = 8

for epoch in range(epochs):
    for group in optimizer.param_groups:
        group["lr"] = 0.08 * 0.9**epoch
    model.train()
    losses = []
    for x, y in batched(stream(shards, **STREAM)):
        loss = criterion(model((x - center) / spread), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        logits = model((x_val - center) / spread)
    accuracy = (logits.argmax(1) == y_val).float().mean().item()
    print(
        f"epoch {epoch} loss {sum(losses) / len(losses):.3f} "
        f"val loss {criterion(logits, y_val).item():.3f} val accuracy {accuracy:.3f}"
    )
print(f"validation accuracy {accuracy:.3f}")
