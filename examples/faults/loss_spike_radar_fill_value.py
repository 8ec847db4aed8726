"""Rain of the next ten minutes from radar, read as a stream in order of time by an IterableDataset.

For some hours one of four radars lost a sector; its files hold -9999, the fill value, which nobody
masks. The loss jumps to thousands, the second moments of Adam with it, and what was learned is
gone. The place is the loader. The twin leaves out frames with the fill value.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

KIND = "loss_spike"
ACCEPT = ("input_not_normalized", "exploding_gradient")
PLACE = ("loader", "input*")
SILENT = False
EXACT = False
EARLY = False

SIDE, FILL = 12, -9999.0


def radar(rng, frames, outage=None):
    """Showers that drift, in mm/h; `outage` frames in the middle have a sector without data."""
    shower = rng.uniform(0, 40, (9, 2))
    wind = rng.normal(0, 0.7, 2)
    size = rng.uniform(1.5, 4.0, 9)
    yy, xx = np.mgrid[:SIDE, :SIDE]
    for i in range(frames):
        wind = 0.98 * wind + rng.normal(0, 0.12, 2)
        shower = (shower + wind + rng.normal(0, 0.1, shower.shape)) % 40
        frame = np.zeros((SIDE, SIDE))
        for (cy, cx), s in zip(shower, size, strict=True):
            frame += 2.5 * np.exp(-((yy - cy + 14) ** 2 + (xx - cx + 14) ** 2) / (2 * s * s))
        frame += 0.05 * rng.standard_normal(frame.shape)
        if outage and outage[0] <= i < outage[1]:
            frame[: SIDE // 3] = FILL
        yield frame.astype(np.float32)


class Nowcast(IterableDataset):
    """Three frames and the one after them, of each radar in turn."""

    def __init__(self, seed, frames, outage=None, mask=True, radars=4):
        self.seed, self.frames, self.outage, self.mask = seed, frames, outage, mask
        self.radars = radars

    def __iter__(self):
        rngs = [np.random.default_rng([self.seed, i]) for i in range(self.radars)]
        outages = [self.outage, *[None] * (self.radars - 1)]
        streams = [radar(r, self.frames, o) for r, o in zip(rngs, outages, strict=True)]
        windows = [[] for _ in streams]
        for frames in zip(*streams, strict=True):
            for i, frame in enumerate(frames):
                windows[i] = window = [*windows[i][-3:], frame]
                if len(window) < 4 or (self.mask and min(f.min() for f in window) == FILL):
                    continue
                past, after = np.stack(window[:3]), window[3]
                yield torch.from_numpy(past), torch.from_numpy(np.clip(after, 0, None))[None]


class Net(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.inflow = nn.Conv2d(3, width, 5, padding=2)
        self.motion = nn.Conv2d(width, width, 3, padding=1)
        self.rain = nn.Conv2d(width, 1, 3, padding=1)

    def forward(self, past):
        h = nn.functional.leaky_relu(self.inflow(past), 0.1)
        h = nn.functional.leaky_relu(self.motion(h), 0.1)
        return past[:, -1:] + self.rain(h)


healthy, seed = arguments(__doc__)
stream = Nowcast(seed, 1100, outage=(700, 730), mask=healthy)
test = [next(iter(DataLoader(Nowcast(1000 + seed, 100, radars=6), 500)))]
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
losses = []
for step, (past, after) in enumerate(DataLoader(stream, batch_size=16)):
    loss = (net(past) - after).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    if step % 40 == 39:
        with torch.no_grad():
            error = np.mean([(net(p) - a).square().mean().item() for p, a in test])
            stay = np.mean([(p[:, -1:] - a).square().mean().item() for p, a in test])
        print(
            f"step {step + 1}: loss {np.mean(losses[-30:]):.4f}, test {error:.4f}, "
            f"persistence {stay:.4f}"
        )
print(f"last loss {loss.item():.4f}")
