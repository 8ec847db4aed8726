"""A causal TCN forecasts the next hour's load at each hour; the chomp cuts too little off in
dilated layers.

Padding is (k - 1) * dilation on both sides as in the well-known TCN, but Chomp1d removes only k -
1 at the end, and the left side is cut instead to keep the length; from dilation 2 on each output
sees the hours that it should forecast. The loss is wonderful, the forecast from a real prefix is
not. The place is the TCN's layers (tcn.*, its chomp).
"""

import itertools

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

KIND = "future_leak"
ACCEPT = ("target_leak",)
PLACE = ("tcn*", "input*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def hourly_load(n_feeders: int, hours: int, rng: np.random.Generator) -> np.ndarray:
    t = np.arange(hours)
    out = []
    for _ in range(n_feeders):
        peak = rng.uniform(7, 20)
        daily = np.exp(np.cos(2 * np.pi * (t % 24 - peak) / 24) * rng.uniform(0.7, 1.5))
        weekend = np.where((t // 24) % 7 >= 5, rng.uniform(0.5, 0.9), 1.0)
        weather = np.zeros(hours)
        shock = rng.normal(0, 0.35, hours)
        for i in range(1, hours):
            weather[i] = 0.93 * weather[i - 1] + shock[i]
        out.append(daily * weekend + 0.5 * weather + rng.normal(0, 0.15, hours))
    out = np.stack(out)
    return (out - out[:, : hours * 3 // 4].mean(1, keepdims=True)) / out[:, : hours * 3 // 4].std(
        1, keepdims=True
    )


class Chomp1d(nn.Module):
    def __init__(self, size: int, total: int):
        super().__init__()
        self.size, self.total = size, total

    def forward(self, x):
        return x[:, :, self.total - self.size : x.size(2) - self.size]


class TemporalBlock(nn.Module):
    def __init__(self, n_in: int, n_out: int, kernel: int, dilation: int, dropout: float = 0.05):
        super().__init__()
        pad = (kernel - 1) * dilation
        cut = pad if healthy else kernel - 1
        self.net = nn.Sequential(
            weight_norm(nn.Conv1d(n_in, n_out, kernel, padding=pad, dilation=dilation)),
            Chomp1d(cut, pad),
            nn.ReLU(),
            nn.Dropout(dropout),
            weight_norm(nn.Conv1d(n_out, n_out, kernel, padding=pad, dilation=dilation)),
            Chomp1d(cut, pad),
            nn.ReLU(),
            nn.Dropout(dropout),
        )
        self.skip = nn.Conv1d(n_in, n_out, 1) if n_in != n_out else nn.Identity()

    def forward(self, x):
        return torch.relu(self.net(x) + self.skip(x))


class Forecaster(nn.Module):
    def __init__(self, channels=(24, 24, 24, 24), kernel: int = 3):
        super().__init__()
        sizes = [1, *channels]
        self.tcn = nn.Sequential(
            *(
                TemporalBlock(a, b, kernel, 2**i)
                for i, (a, b) in enumerate(itertools.pairwise(sizes))
            )
        )
        self.out = nn.Linear(channels[-1], 1)

    def forward(self, series):  # (batch, time) -> forecast of the next value at each time
        return self.out(self.tcn(series.unsqueeze(1)).transpose(1, 2)).squeeze(-1)


WINDOW, BATCH, STEPS = 96, 40, 400
series = torch.tensor(hourly_load(40, 24 * 60, np.random.default_rng(seed)), dtype=torch.float32)
cut = 24 * 45
train, valid = series[:, :cut], series[:, cut:]


def sample(part: torch.Tensor, n: int):
    f = torch.randint(0, len(part), (n,))
    s = torch.randint(0, part.size(1) - WINDOW - 1, (n,))
    rows = part[f[:, None], s[:, None] + torch.arange(WINDOW + 1)]
    return rows[:, :-1], rows[:, 1:]


model = Forecaster()
opt = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-4)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, 4e-3, total_steps=STEPS, pct_start=0.2)
val_x, val_y = sample(valid, 400)
mae_naive = (val_x[:, -1] - val_y[:, -1]).abs().mean().item()

smooth = None
for step in range(1, STEPS + 1):
    model.train()
    x, y = sample(train, BATCH)
    pred = model(x)
    loss = ((pred - y)[:, 32:] ** 2).mean()  # the first hours have too short a past
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    sched.step()
    smooth = loss.item() if smooth is None else 0.9 * smooth + 0.1 * loss.item()
    if step % 100 == 0:
        model.eval()
        with torch.no_grad():
            pred = model(val_x)
        inner = (pred - val_y)[:, 32:].pow(2).mean().item()
        last = (pred[:, -1] - val_y[:, -1]).abs().mean().item()
        print(
            f"step {step} train mse {smooth:.4f} val mse {inner:.4f} next-hour MAE {last:.4f} (naive {mae_naive:.4f})"  # noqa: E501
        )
