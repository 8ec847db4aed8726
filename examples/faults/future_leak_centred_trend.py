"""A one-step-ahead forecaster of shop sales with a trend/season decomposition; the moving average
is centred.

The network is a causal convolution at every step, as it should be; the block that splits the
series in trend and rest, taken over from a model for whole windows, pads on both sides: the trend
at t knows t+1 and t+2. The teacher-forced error looks wonderful; live, where nothing lies after
the last day, the forecasts are worse. The place is the module decomposition.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "future_leak"
ACCEPT = ("target_leak",)
PLACE = ("decomposition*", "input*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

CONFIG = {"window": 56, "kernel": 5, "channels": 24, "batch": 64, "epochs": 8, "lr": 2e-3}


def simulate_shops(n_shops, days, seed):
    rng = np.random.default_rng(seed + 5)
    t = np.arange(days)
    out = np.empty((n_shops, days), dtype=np.float32)
    for s in range(n_shops):
        week = rng.normal(0, 1, 7)
        level = np.cumsum(rng.normal(0, 0.12, days))
        noise = np.zeros(days)
        for k in range(1, days):
            noise[k] = 0.6 * noise[k - 1] + rng.normal(0, 0.45)
        promo = (rng.random(days) < 0.05) * rng.uniform(0.5, 1.5)
        out[s] = level + 0.8 * week[t % 7] + noise + promo
    return (out - out[:, : days // 2].mean(1, keepdims=True)) / out[:, : days // 2].std(
        1, keepdims=True
    )


class Windows(Dataset):
    def __init__(self, series, window, stride):
        self.items = [
            series[s, a : a + window + 1]
            for s in range(len(series))
            for a in range(0, series.shape[1] - window, stride)
        ]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, k):
        w = torch.from_numpy(self.items[k])
        return w[:-1], w[1:]


class Decomposition(nn.Module):
    """Moving average (trend) and what is left."""

    def __init__(self, kernel):
        super().__init__()
        self.kernel = kernel
        self.avg = nn.AvgPool1d(kernel, stride=1)

    def forward(self, x):
        k = self.kernel - 1
        left = k if healthy else k // 2
        padded = F.pad(x, (left, k - left), mode="replicate")
        trend = self.avg(padded)
        return trend, x - trend


class CausalConv(nn.Module):
    def __init__(self, c_in, c_out, kernel, dilation):
        super().__init__()
        self.left = (kernel - 1) * dilation
        self.conv = nn.Conv1d(c_in, c_out, kernel, dilation=dilation)

    def forward(self, x):
        return self.conv(F.pad(x, (self.left, 0)))


class Forecaster(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        c = cfg["channels"]
        self.decomposition = Decomposition(cfg["kernel"])
        self.inp = CausalConv(2, c, 3, 1)
        self.blocks = nn.ModuleList(CausalConv(c, c, 3, d) for d in (1, 2, 4, 8))
        self.head = nn.Conv1d(c, 1, 1)

    def forward(self, x):
        trend, rest = self.decomposition(x.unsqueeze(1))
        h = self.inp(torch.cat([trend, rest], 1))
        for block in self.blocks:
            h = h + F.gelu(block(h))
        return self.head(h).squeeze(1)


def live_error(model, loader):
    """As in production: only the past is known, the last step is the forecast."""
    model.eval()
    errors = []
    with torch.no_grad():
        for x, y in loader:
            errors.append((model(x)[:, -1] - y[:, -1]).abs())
    return torch.cat(errors).mean().item()


def forced_error(model, loader):
    model.eval()
    errors = []
    with torch.no_grad():
        for x, y in loader:
            errors.append((model(x) - y)[:, 14:-3].abs().flatten())
    return torch.cat(errors).mean().item()


series = simulate_shops(40, 420, seed)
train_loader = DataLoader(
    Windows(series[:, :320], CONFIG["window"], 6), CONFIG["batch"], shuffle=True
)
val_loader = DataLoader(Windows(series[:, 320:], CONFIG["window"], 2), 256)

model = Forecaster(CONFIG)
optimizer = torch.optim.AdamW(model.parameters(), lr=CONFIG["lr"], weight_decay=1e-3)
scheduler = torch.optim.lr_scheduler.OneCycleLR(
    optimizer, CONFIG["lr"], total_steps=CONFIG["epochs"] * len(train_loader)
)
for epoch in range(CONFIG["epochs"]):
    model.train()
    running = []
    for x, y in train_loader:
        optimizer.zero_grad(set_to_none=True)
        loss = F.smooth_l1_loss(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        running.append(loss.item())
    print(
        f"epoch {epoch} loss {np.mean(running):.4f} val MAE {forced_error(model, val_loader):.3f}"
        f" live MAE {live_error(model, val_loader):.3f}"
    )
