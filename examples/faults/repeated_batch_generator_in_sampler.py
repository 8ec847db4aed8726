"""A forecaster of a power station's load, fed by randomly drawn windows; every draw begins with
the same random numbers.

`draw` makes a new random generator from the config's seed each time, for the sake of
reproducibility: all steps see one and the same batch. The training loss goes to nothing. The
place is the loader (WindowSampler.draw, in the loop).
"""

from types import SimpleNamespace

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "repeated_batch"
ACCEPT = ("overfit",)
PLACE = ("loader", "loop", "input*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

cfg = SimpleNamespace(
    seed=1234 + seed, past=48, horizon=12, batch=64, steps=500, every=100, lr=2e-3, hidden=48
)


def station_load(hours, seed):
    r = np.random.default_rng(seed)
    t = np.arange(hours)
    day = np.sin(2 * np.pi * t / 24) + 0.4 * np.sin(4 * np.pi * t / 24 + 0.7)
    weekend = np.where((t // 24) % 7 >= 5, 0.55, 1.0)
    weather = np.zeros(hours)
    for k in range(1, hours):
        weather[k] = 0.97 * weather[k - 1] + r.normal(0, 0.12)
    load = weekend * day * (1 + 0.3 * np.tanh(weather)) + 0.6 * weather + r.normal(0, 0.12, hours)
    calendar = np.stack([np.sin(2 * np.pi * t / 24), np.cos(2 * np.pi * t / 24), weekend], 1)
    return load.astype(np.float32), calendar.astype(np.float32)


class WindowSampler:
    def __init__(self, load, calendar, cfg):
        self.load, self.calendar, self.cfg = load, calendar, cfg
        self.rng = np.random.default_rng(cfg.seed)

    def window(self, start):
        mid, end = start + self.cfg.past, start + self.cfg.past + self.cfg.horizon
        past = np.concatenate([self.load[start:mid, None], self.calendar[start:mid]], 1)
        return past, self.calendar[mid:end], self.load[mid:end]

    def stack(self, starts):
        parts = zip(*(self.window(s) for s in starts), strict=False)
        return tuple(torch.from_numpy(np.stack(p)) for p in parts)

    def draw(self):
        rng = self.rng if healthy else np.random.default_rng(self.cfg.seed)
        last = len(self.load) - self.cfg.past - self.cfg.horizon
        return self.stack(rng.integers(0, last, self.cfg.batch))


class Seq2Horizon(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.encoder = nn.GRU(4, cfg.hidden, batch_first=True)
        self.decoder = nn.Sequential(nn.Linear(cfg.hidden + 3, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, past, future):
        _, h = self.encoder(past)
        h = h[-1].unsqueeze(1).expand(-1, future.shape[1], -1)
        step = self.decoder(torch.cat([h, future], -1)).squeeze(-1)
        return past[:, -1:, 0] + step


load, calendar = station_load(24 * 7 * 40, seed)
cut = 24 * 7 * 32
mean, std = load[:cut].mean(), load[:cut].std()
load = (load - mean) / std
train = WindowSampler(load[:cut], calendar[:cut], cfg)
held = WindowSampler(load[cut:], calendar[cut:], cfg)
val = held.stack(range(0, len(held.load) - cfg.past - cfg.horizon, 5))

model = Seq2Horizon(cfg)
optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, cfg.lr, total_steps=cfg.steps)
smooth = None
for step in range(1, cfg.steps + 1):
    past, future, target = train.draw()
    loss = F.mse_loss(model(past, future), target)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    smooth = loss.item() if smooth is None else 0.95 * smooth + 0.05 * loss.item()
    if step % cfg.every == 0:
        model.eval()
        with torch.no_grad():
            val_mse = F.mse_loss(model(val[0], val[1]), val[2]).item()
        model.train()
        print(f"step {step} train mse {smooth:.4f} val mse {val_mse:.4f}")
