"""Wind power for the next six hours; the losses of the hours are put together by torch.tensor.

Each hour has its own head and its own loss, which are gathered in a list. `torch.tensor(losses)`
copies their numbers; as backward() then complained that nothing requires a gradient, the forum's
`requires_grad=True` was added. Now backward() runs and reaches nothing. The place is the loss. The
twin takes torch.stack.
"""

import warnings

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "detached_loss"
ACCEPT = ("step_without_gradient",)
PLACE = ("loss*", "loop")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
warnings.filterwarnings("ignore")  # the log was full of them
HISTORY, HOURS = 24, 6


def wind_park(hours, g):
    """Speed as a slow autoregression with a daily breeze; power by the turbine's curve."""
    speed, x = torch.zeros(hours), 0.0
    shocks = torch.randn(hours, generator=g)
    trend = 0.0
    for h in range(hours):
        trend = 0.9 * trend + 0.25 * shocks[h].item()
        x = 0.97 * x + trend
        speed[h] = 8 + 0.35 * x + 1.5 * torch.sin(torch.tensor(h * 0.2618))
    power = ((speed.clamp(3, 13) - 3) / 10) ** 2
    return power + 0.03 * torch.randn(hours, generator=g)


def windows(power):
    w = power.unfold(0, HISTORY + HOURS, 1)
    return TensorDataset((w[:, :HISTORY] - 0.3) * 3, w[:, HISTORY:])


class WindModel(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(HISTORY, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.heads = nn.ModuleList([nn.Linear(width, 1) for _ in range(HOURS)])

    def forward(self, x):
        h = self.trunk(x)
        return [head(h).squeeze(1) for head in self.heads]


def horizon_loss(forecasts, future):
    losses = []
    for hour, forecast in enumerate(forecasts):
        losses.append(F.smooth_l1_loss(forecast, future[:, hour], beta=0.1))
    if healthy:
        return torch.stack(losses).mean()
    return torch.tensor(losses, requires_grad=True).mean()


def validate(model, loader):
    model.eval()
    error, naive, n = 0.0, 0.0, 0
    with torch.no_grad():
        for x, future in loader:
            forecast = torch.stack(model(x), 1)
            last = x[:, -1:] / 3 + 0.3
            error += (forecast - future).abs().sum().item()
            naive += (last - future).abs().sum().item()
            n += future.numel()
    return error / n, naive / n


power = wind_park(4200, torch.Generator().manual_seed(seed))
train_loader = DataLoader(windows(power[:3200]), batch_size=64, shuffle=True)
val_loader = DataLoader(windows(power[3200:]), batch_size=500)
model = WindModel()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(1, 13):
    model.train()
    running = 0.0
    for history, future in train_loader:
        optimizer.zero_grad()
        loss = horizon_loss(model(history), future)
        loss.backward()
        optimizer.step()
        running += loss.item()
    mae, persistence = validate(model, val_loader)
    print(
        f"epoch {epoch:2d} loss {running / len(train_loader):.4f} "
        f"validation MAE {mae:.4f} (persistence {persistence:.4f})"
    )
