"""The next hour's load by a temporal convolutional net whose layers are padded on both sides.

The padding is as in image nets, so that the lengths match. The output for an hour then sees the
hours that follow, among them the one it should predict: the error is far too good, and a live
forecast is worse than repeating the last value. The place is the convolutions (blocks), which see
ahead in the input. The twin pads on the left only.
"""

import math

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "future_leak"
ACCEPT = ("target_leak",)
PLACE = ("blocks*", "input", "model")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

HOURS = 24 * 160
WINDOW = 72
CHANNELS = 16
STEPS = 320


def city_load(hours):
    """Two daily peaks, a week, the weather that drifts, and shocks that die out slowly."""
    t = torch.arange(hours).float()
    day = torch.sin(2 * math.pi * t / 24 - 1.2) + 0.5 * torch.sin(4 * math.pi * t / 24)
    week = 0.5 * torch.cos(2 * math.pi * t / 168)
    weather = [0.0]
    for shock in torch.randn(hours - 1).tolist():
        weather.append(0.9 * weather[-1] + 0.35 * shock)
    return 50 + 9 * (day + week + torch.tensor(weather))


class ConvBlock(nn.Module):
    def __init__(self, n_in, n_out, kernel, dilation, causal):
        super().__init__()
        span = (kernel - 1) * dilation
        self.padding = (span, 0) if causal else (span // 2, span - span // 2)
        self.conv = nn.Conv1d(n_in, n_out, kernel, dilation=dilation)
        self.skip = nn.Conv1d(n_in, n_out, 1)

    def forward(self, x):
        return F.relu(self.conv(F.pad(x, self.padding))) + self.skip(x)


class TCN(nn.Module):
    def __init__(self, causal):
        super().__init__()
        self.blocks = nn.Sequential(
            *(ConvBlock(1 if d == 1 else CHANNELS, CHANNELS, 3, d, causal) for d in (1, 2, 4, 8))
        )
        self.out = nn.Conv1d(CHANNELS, 1, 1)

    def forward(self, load):
        return self.out(self.blocks(load.unsqueeze(1))).squeeze(1)


def draw_windows(series, n):
    starts = torch.randint(0, len(series) - WINDOW, (n, 1))
    window = series[starts + torch.arange(WINDOW + 1)]
    return window[:, :-1], window[:, 1:]


@torch.no_grad()
def validate(model, series):
    model.eval()
    windows = series.unfold(0, WINDOW + 1, WINDOW)
    predicted = model(windows[:, :-1])
    return F.mse_loss(predicted[:, 30:], windows[:, 31:]).item()


@torch.no_grad()
def live(model, series):
    """Each window ends now, as it will in use, and only its last output counts."""
    model.eval()
    windows = series.unfold(0, WINDOW + 1, 5)
    return F.mse_loss(model(windows[:, :-1])[:, -1], windows[:, -1]).item()


series = city_load(HOURS)
cut = int(0.8 * HOURS)
mean, std = series[:cut].mean(), series[:cut].std()
train, held_out = (series[:cut] - mean) / std, (series[cut:] - mean) / std

model = TCN(causal=healthy)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 120, gamma=0.4)
recent = []
for step in range(1, STEPS + 1):
    model.train()
    past, following = draw_windows(train, 24)
    loss = F.mse_loss(model(past), following)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    recent.append(loss.item())
    if step % 40 == 0:
        mean_loss = sum(recent[-40:]) / 40
        print(f"{step:4d}  loss {mean_loss:.4f}  held-out hours {validate(model, held_out):.4f}")

print(f"last value repeated: {F.mse_loss(held_out[1:], held_out[:-1]).item():.4f}")
print(f"live forecast of the next hour: {live(model, held_out):.4f}")
