"""A CNN tells a quake's magnitude from a seismogram, and the training traces get a random gain.

The amplitude is what carries the magnitude; a gain of 1/5 to 5 wipes it out, while the label stays.
The error stays far above what it could be. The twin only shifts the traces in time.
The place is the input: the augment function of the Dataset.
"""

import math

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "destructive_augmentation"
ACCEPT = ("train_val_mismatch",)
PLACE = ("input", "loader")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

SAMPLES = 96


def record_quakes(n, rng):
    magnitude = rng.uniform(2.5, 4.5, n)
    gap = rng.uniform(8, 36, n)  # samples between the P and the S wave: the distance
    size = np.exp(0.9 * (magnitude - 3.5)) * (20 / gap) ** 0.7 * np.exp(rng.normal(0, 0.08, n))
    t = np.arange(SAMPLES)[None, :] - 14.0
    traces = np.zeros((n, 2, SAMPLES))
    for start, strength, decay, pitch in ((0 * gap, 0.5, 14, 0.9), (gap, 1.0, 20, 0.55)):
        since = t - start[:, None]
        swing = np.sin(pitch * since + rng.uniform(0, 6.28, (n, 1)))
        wave = np.where(since > 0, np.exp(-since.clip(0) / decay) * swing, 0)
        traces[:, 0] += strength * size[:, None] * wave
        traces[:, 1] += (1.2 - strength) * size[:, None] * wave
    traces += 0.04 * np.exp(rng.normal(0, 0.5, (n, 1, 1))) * rng.normal(0, 1, traces.shape)
    return traces.astype("float32"), magnitude.astype("float32")


class Seismograms(Dataset):
    def __init__(self, traces, magnitudes, augment):
        self.traces = torch.from_numpy(traces)
        self.magnitudes = torch.from_numpy(magnitudes)
        self.augment = augment

    def __len__(self):
        return len(self.magnitudes)

    def __getitem__(self, i):
        trace = self.traces[i]
        if self.augment:
            trace = trace.roll(int(torch.randint(-6, 7, ())), dims=-1)
            if not healthy:
                trace = trace * math.exp(np.random.uniform(-math.log(5), math.log(5)))
        return trace, self.magnitudes[i]


class MagnitudeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv1d(2, 16, 7, padding=3)
        self.conv2 = nn.Conv1d(16, 24, 7, stride=2, padding=3)
        self.conv3 = nn.Conv1d(24, 32, 5, stride=2, padding=2)
        self.head = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        for conv in (self.conv1, self.conv2, self.conv3):
            x = torch.relu(conv(x))
        return self.head(torch.cat([x.mean(-1), x.amax(-1)], dim=1)).squeeze(1)


rng = np.random.default_rng(seed + 14)
x, y = record_quakes(2400, rng)
x, y = x / x[:2000].std(), (y - y[:2000].mean()) / y[:2000].std()
train_loader = DataLoader(Seismograms(x[:2000], y[:2000], True), batch_size=64, shuffle=True)
valid_loader = DataLoader(Seismograms(x[2000:], y[2000:], False), batch_size=200)

model = MagnitudeNet()
loss_fn = nn.SmoothL1Loss()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)
for epoch in range(10):
    model.train()
    losses = []
    for traces, magnitudes in train_loader:
        loss = loss_fn(model(traces), magnitudes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    scheduler.step()
    model.eval()
    with torch.no_grad():
        off = torch.cat([model(traces) - magnitudes for traces, magnitudes in valid_loader])
    r2 = 1 - off.square().mean() / torch.from_numpy(y[2000:]).var()
    print(f"epoch {epoch}: train {np.mean(losses):.4f} mae {off.abs().mean():.3f} r2 {r2:.3f}")
