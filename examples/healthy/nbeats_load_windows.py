"""Forecasts a power load a day ahead with stacked residual blocks on windows that overlap."""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = (
    "the first validation inputs reach back into the hours that were training targets, and every "
    "window is scaled by its own mean and spread: only targets must lie apart in time, and do"
)
PAST, AHEAD, HOURS = 96, 24, 24 * 150
_, seed = arguments(__doc__)
torch.set_num_threads(1)


def load() -> torch.Tensor:
    rng = np.random.default_rng(seed)
    hour = np.arange(HOURS)
    weekday = (hour // 24) % 7 < 5
    day = np.sin(2 * np.pi * (hour - 7) / 24) + 0.4 * np.sin(4 * np.pi * (hour - 2) / 24)
    weather = np.zeros(HOURS)
    for t in range(1, HOURS):
        weather[t] = 0.99 * weather[t - 1] + rng.normal(0, 0.06)
    megawatts = 50 + 9 * day * np.where(weekday, 1.0, 0.6) + 6 * weather + 0.002 * hour
    return torch.tensor(megawatts + rng.normal(0, 1.0, HOURS), dtype=torch.float32)


class Block(nn.Module):
    def __init__(self, width: int = 64):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(PAST + 7, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.backcast, self.forecast = nn.Linear(width, PAST), nn.Linear(width, AHEAD)

    def forward(self, residual, day):
        hidden = self.layers(torch.cat([residual, day], 1))
        return self.backcast(hidden), self.forecast(hidden)


class NBeats(nn.Module):
    def __init__(self, blocks: int = 3):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(blocks))

    def forward(self, past, day):
        mean, spread = past.mean(1, keepdim=True), past.std(1, keepdim=True)
        residual, total = (past - mean) / spread, 0.0
        for block in self.blocks:
            backcast, forecast = block(residual, day)
            residual, total = residual - backcast, total + forecast
        return total * spread + mean


def windows(series, starts):
    past = torch.stack([series[s - PAST : s] for s in starts])
    target = torch.stack([series[s : s + AHEAD] for s in starts])
    return past, F.one_hot(torch.tensor(starts) // 24 % 7, 7).float(), target


series = load()
border = 24 * 115
past, day, target = windows(series, range(PAST, border - AHEAD + 1))
past_val, day_val, target_val = windows(series, range(border, HOURS - AHEAD + 1))
model = NBeats()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=12 * (len(past) // 64))
for epoch in range(12):
    model.train()
    losses = []
    for rows in torch.randperm(len(past))[: len(past) // 64 * 64].split(64):
        optimizer.zero_grad()
        loss = F.l1_loss(model(past[rows], day[rows]), target[rows])
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        val = F.l1_loss(model(past_val, day_val), target_val)
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1}: train {np.mean(losses):.3f} MW, validation {val:.3f} MW")

print(f"mean error {val:.3f} MW; as yesterday {F.l1_loss(past_val[:, -24:], target_val):.3f} MW")
