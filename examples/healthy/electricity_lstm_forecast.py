"""Tomorrow's electricity load, 24 hours at once, by an LSTM from the last three days.

The split is by time: the first four fifths for training, the rest for validation, scaled by the
training part. Windows are shuffled among themselves; every one looks only backward. The yardstick
is the load of the same hours a day before.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

ODD = "neighbouring windows share most of their hours, and validation is a later time than training"

_, seed = arguments(__doc__)
PAST, AHEAD = 72, 24


def load_curve(days=220):
    r = np.random.default_rng(seed)
    hour = np.arange(days * 24)
    weekend = (hour // 24) % 7 >= 5
    shape = np.sin(2 * np.pi * (hour % 24 - 9) / 24) + 0.5 * np.sin(
        4 * np.pi * (hour % 24 - 4) / 24
    )
    drift = np.zeros(len(hour))
    for t in range(1, len(hour)):
        drift[t] = 0.995 * drift[t - 1] + r.normal(0, 0.06)
    load = (
        40
        + 8 * shape * np.where(weekend, 0.5, 1.0)
        - 4 * weekend
        + 3 * drift
        + r.normal(0, 0.6, len(hour))
    )
    angle = 2 * np.pi * (hour % 24) / 24
    tomorrow_weekend = np.roll(weekend, -24)
    return load, np.stack([np.sin(angle), np.cos(angle), weekend, tomorrow_weekend], 1)


class Windows(Dataset):
    def __init__(self, load, calendar, stride):
        self.series = torch.tensor(
            np.concatenate([load[:, None], calendar], 1), dtype=torch.float32
        )
        self.starts = range(0, len(load) - PAST - AHEAD, stride)

    def __len__(self):
        return len(self.starts)

    def __getitem__(self, i):
        s = self.starts[i]
        return self.series[s : s + PAST], self.series[s + PAST : s + PAST + AHEAD, 0]


class Forecaster(nn.Module):
    """Says how the coming day differs from the last one."""

    def __init__(self, hidden=32):
        super().__init__()
        self.lstm = nn.LSTM(5, hidden, batch_first=True)
        self.head = nn.Linear(hidden, AHEAD)

    def forward(self, x):
        states, _ = self.lstm(x)
        return x[:, -AHEAD:, 0] + self.head(states[:, -1])


load, calendar = load_curve()
cut = int(0.8 * len(load))
mean, std = load[:cut].mean(), load[:cut].std()
load = (load - mean) / std
train = DataLoader(Windows(load[:cut], calendar[:cut], stride=3), batch_size=64, shuffle=True)
val = DataLoader(Windows(load[cut:], calendar[cut:], stride=6), batch_size=256)
model, criterion = Forecaster(), nn.HuberLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=5, gamma=0.4)
for epoch in range(14):
    model.train()
    total = 0.0
    for x, y in train:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item() / len(train)
    scheduler.step()
    model.eval()
    with torch.no_grad():
        x, y = next(iter(val))
        said = model(x)
    error, naive = (said - y).abs().mean() * std, (x[:, -AHEAD:, 0] - y).abs().mean() * std
    print(
        f"epoch {epoch:2d} train {total:.4f} val {criterion(said, y):.4f} "
        f"MAE {error:.2f} (a day before {naive:.2f})"
    )
