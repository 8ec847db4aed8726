"""Electricity load a day ahead by dilated convolutions: the rate is scaled by the batch size,
undivided.

The linear scaling rule multiplies the reference rate by batch / reference batch. The helper lost
the division when the reference batch went into another config, so Adam runs at 1e-3 times the batch
size, a hundred times too fast. The place is the optimizer (its rate). The twin divides by the
reference batch of 32.
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "learning_rate_too_high"
ACCEPT = ("loss_spike",)
PLACE = ("optimizer",)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
PAST, AHEAD, BATCH, REFERENCE = 96, 24, 128, 32


def scaled_rate(base: float, batch: int, reference: int = REFERENCE) -> float:
    return base * batch / reference if healthy else base * batch


def load_series(hours: int = 24 * 300):
    g = torch.Generator().manual_seed(20 + seed)
    t = torch.arange(hours, dtype=torch.float32)
    noise = torch.randn(hours, generator=g) * 0.12
    drift = torch.zeros(hours)
    for k in range(1, hours):
        drift[k] = 0.97 * drift[k - 1] + noise[k]
    day, week = torch.sin(2 * math.pi * t / 24 - 1.5), torch.sin(2 * math.pi * t / 168)
    evening = torch.exp(-(((t % 24 - 19) / 2.5) ** 2))
    weekend = ((t // 24) % 7 >= 5).float()
    value = 10 + 2 * day * (1 - 0.5 * weekend) + 0.6 * week + 1.5 * evening + drift
    return value + 0.1 * torch.randn(hours, generator=g)


class Block(nn.Module):
    def __init__(self, channels: int, dilation: int):
        super().__init__()
        self.pad = nn.ConstantPad1d((2 * dilation, 0), 0.0)
        self.conv = nn.Conv1d(channels, channels, 3, dilation=dilation)
        self.mix = nn.Conv1d(channels, channels, 1)

    def forward(self, x):
        return x + self.mix(torch.relu(self.conv(self.pad(x))))


class Forecaster(nn.Module):
    def __init__(self, channels: int = 16):
        super().__init__()
        self.lift = nn.Conv1d(1, channels, 1)
        self.blocks = nn.Sequential(*(Block(channels, 2**k) for k in range(5)))
        self.head = nn.Linear(channels, AHEAD)

    def forward(self, x):
        return x[:, -1:] + self.head(self.blocks(self.lift(x.unsqueeze(1)))[:, :, -1])


series = load_series()
cut = int(len(series) * 0.8)
series = (series - series[:cut].mean()) / series[:cut].std()
windows = series[:cut].unfold(0, PAST + AHEAD, 3)
held = series[cut:].unfold(0, PAST + AHEAD, 6)
model = Forecaster()
rate = scaled_rate(1e-3, BATCH)
optimizer = torch.optim.Adam(model.parameters(), lr=rate)
epochs, per_epoch = 14, math.ceil(len(windows) / BATCH)
warm = 10
schedule = torch.optim.lr_scheduler.LambdaLR(
    optimizer,
    lambda k: min((k + 1) / warm, 0.5 + 0.5 * math.cos(math.pi * k / (epochs * per_epoch))),
)

for epoch in range(epochs):
    model.train()
    for rows in torch.randperm(len(windows)).split(BATCH):
        batch = windows[rows]
        loss = nn.functional.smooth_l1_loss(model(batch[:, :PAST]), batch[:, PAST:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    model.eval()
    with torch.no_grad():
        mae = (model(held[:, :PAST]) - held[:, PAST:]).abs().mean().item()
    if epoch % 4 == 1:
        print(f"epoch {epoch + 1}: train {loss.item():.4f}, validation mae {mae:.4f}")
naive = (held[:, PAST - 24 : PAST] - held[:, PAST:]).abs().mean().item()
print(f"validation mae {mae:.4f} (same hour yesterday: {naive:.4f})")
