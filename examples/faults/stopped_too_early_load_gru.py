"""A GRU forecasts the next hour's electricity load from the last day; it is trained for one epoch
only.

The number of epochs was left at 1 from a trial run of the script; the loss still falls steeply
when the training ends. The place is the loop.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "stopped_too_early"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

CONFIG = {"window": 24, "hidden": 32, "lr": 1e-3, "batch": 20, "epochs": 8 if healthy else 1}


def load_curve(hours, seed):
    g = torch.Generator().manual_seed(50 + seed)
    t = torch.arange(hours, dtype=torch.float32)
    day = torch.sin(2 * math.pi * (t - 7) / 24) + 0.5 * torch.sin(4 * math.pi * (t - 2) / 24)
    weekend = ((t // 24) % 7 >= 5).float()
    noise = torch.zeros(hours)
    shock = 0.12 * torch.randn(hours, generator=g)
    for i in range(1, hours):
        noise[i] = 0.8 * noise[i - 1] + shock[i]
    return 60 + 12 * day * (1 - 0.4 * weekend) - 6 * weekend + 8 * noise


series = load_curve(24 * 7 * 20, seed)
cut = int(0.8 * len(series))
mean, std = series[:cut].mean(), series[:cut].std()
series = (series - mean) / std


def windows(part):
    w = part.unfold(0, CONFIG["window"] + 1, 1)
    return TensorDataset(w[:, :-1].unsqueeze(-1).contiguous(), w[:, -1].contiguous())


train_loader = DataLoader(windows(series[:cut]), batch_size=CONFIG["batch"], shuffle=True)
val_loader = DataLoader(windows(series[cut:]), batch_size=200)


class LoadForecaster(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.gru = nn.GRU(1, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x):
        out, _ = self.gru(x)
        return self.head(out[:, -1]).squeeze(-1)


model = LoadForecaster(CONFIG["hidden"])
optimizer = torch.optim.Adam(model.parameters(), lr=CONFIG["lr"])
loss_fn = nn.MSELoss()

for epoch in range(CONFIG["epochs"]):
    model.train()
    for i, (x, y) in enumerate(train_loader):
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        if i % 20 == 0:
            print(f"epoch {epoch} batch {i:3d} loss {loss.item():.4f}")
    model.eval()
    with torch.no_grad():
        errors = torch.cat([(model(x) - y) ** 2 for x, y in val_loader])
    print(f"epoch {epoch} val mse {errors.mean():.4f}  RMSE {errors.mean().sqrt() * std:.2f} MW")
