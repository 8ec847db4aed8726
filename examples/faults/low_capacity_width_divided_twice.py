"""Power of a solar park from weather and clock: the hidden width is divided by the heads twice.

`width` became the total over all heads in a refactoring: the park divides it by the number of
heads, and so does, once more, the builder of a head. 192 units turn into 3 per head, and each
inverter's curve is drawn from three kinks, with an error far above the meter's. The place is the
heads. The twin's builder takes the width that it is given, 24.
"""

import torch
from data import arguments
from torch import nn

KIND = "low_capacity"
ACCEPT = ()
PLACE = ("heads", "heads.0.0", "heads.0.2")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
INVERTERS = 8


def park(count, g):
    """Clouds, temperature, wind, hour and day of the year; the power of eight inverters."""
    hour = 24 * torch.rand(count, generator=g)
    day = 6.283 * torch.rand(count, generator=g)
    cloud, warm, wind = (
        torch.rand(count, generator=g),
        torch.randn(count, generator=g),
        torch.rand(count, generator=g),
    )
    height = (0.35 + 0.3 * day.sin() - (0.262 * hour).cos()).clamp(min=0)
    powers = []
    for i in range(INVERTERS):
        tilt = (0.262 * (hour - 12) + 0.25 * (i - 3.5)).cos().clamp(min=0.1)
        heat = 1 - 0.12 * (warm - 2 * wind) * height
        shade = 1 - 0.7 * cloud * (1 + 0.5 * (9.4 * cloud + i).sin())
        powers.append((height * tilt * heat * shade).clamp(0, 1.1))
    clock = [(0.262 * hour).sin(), (0.262 * hour).cos(), day.sin(), day.cos()]
    x = torch.stack([3.4 * (cloud - 0.5), warm, 3.4 * (wind - 0.5), *clock], 1)
    y = torch.stack(powers, 1) + 0.02 * torch.randn(count, INVERTERS, generator=g)
    return x, (y - 0.35) / 0.35


class Head(nn.Sequential):
    def __init__(self, inputs, width, heads):
        units = width if healthy else width // heads
        super().__init__(
            nn.Linear(inputs, units),
            nn.ReLU(),
            nn.Linear(units, units),
            nn.ReLU(),
            nn.Linear(units, 1),
        )


class Park(nn.Module):
    def __init__(self, inputs, width, heads):
        super().__init__()
        self.heads = nn.ModuleList(Head(inputs, width // heads, heads) for _ in range(heads))

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], 1)


def epochs(x, y, size, count):
    for number in range(count):
        for rows in torch.randperm(len(x)).split(size):
            yield number, x[rows], y[rows]


g = torch.Generator().manual_seed(seed)
x, y = park(5000, g)
x_val, y_val = park(1000, g)
model = Park(7, 192, INVERTERS)
optimizer = torch.optim.NAdam(model.parameters(), lr=4e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 700, eta_min=1e-5)
for step, (epoch, batch, wanted) in enumerate(epochs(x, y, 100, 14), 1):
    model.train()
    optimizer.zero_grad()
    loss = (model(batch) - wanted).square().mean()
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 100 == 0:
        model.eval()
        with torch.no_grad():
            val = (model(x_val) - y_val).square().mean()
        print(
            f"epoch {epoch} loss {loss:.4f} val loss {val:.4f} "
            f"validation R2 {1 - val / y_val.var():.4f}"
        )
