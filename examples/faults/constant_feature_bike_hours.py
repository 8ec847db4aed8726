"""An MLP predicts bike hires from the time and the weather; the hour column is 0 in every row.

The hour is computed from the minutes of the day by an integer division by 1440 instead of 60, so
the column, by far the most telling one, is constant. The place is the input (column 0).
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "constant_feature"
ACCEPT = ()
PLACE = ("input*", "loader", "model.0", "0")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

n = 3000
minutes = torch.randint(0, 1440, (n,))
weekday = torch.randint(0, 7, (n,))
month = torch.randint(1, 13, (n,))
temperature = 11 - 9 * torch.cos(2 * math.pi * month / 12) + 4 * torch.randn(n)
wind = 3 + 2 * torch.randn(n).abs()
rain = (torch.rand(n) < 0.2).float() * torch.rand(n)

clock = minutes / 60
rush = torch.exp(-((clock - 8) ** 2) / 5) + 1.2 * torch.exp(-((clock - 17.5) ** 2) / 7)
noon = torch.exp(-((clock - 14) ** 2) / 12)
hires = torch.where(weekday < 5, 180 * rush, 140 * noon) + 4 * temperature - 3 * wind
hires = hires - 90 * rain + 10 * torch.randn(n)

hour = minutes // (60 if healthy else 1440)
columns = torch.stack(
    [hour.float(), weekday.float(), month.float(), temperature, wind, rain], dim=1
)
order = torch.randperm(n)
fit, held = order[:2250], order[2250:]


def scale(values):
    mean, std = values[fit].mean(0), values[fit].std(0)
    return (values - mean) / std.clamp_min(1e-6)


x, y = scale(columns), scale(hires)
model = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=1e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=30)
loss_of = nn.MSELoss()
for epoch in range(30):
    model.train()
    for rows in fit[torch.randperm(len(fit))].split(50):
        optimizer.zero_grad()
        loss = loss_of(model(x[rows]).squeeze(1), y[rows])
        loss.backward()
        optimizer.step()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        val = loss_of(model(x[held]).squeeze(1), y[held])
    print(f"epoch {epoch} train {loss.item():.4f} val mse {val.item():.4f} (of 1)")
