"""Forecast of hourly bike rentals: the sums of eight small batches are stepped on undivided.

The laptop could not hold the large batch of the paper, so the batch was cut into eight parts
and the optimizer stepped after the eighth. The loss of a part is a mean over its own rows, and
the gradients add up, so the step is eight times that of the large batch.
The place is the loop (or the loss). The twin divides each part's loss by their number.
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "accumulation_not_averaged"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("loop", "loss*")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

MICRO, PARTS, EPOCHS = 16, 8, 24


def make_hours(n):
    hour = torch.randint(0, 24, (n,)).float()
    weekend = (torch.rand(n) < 2 / 7).float()
    temperature = torch.randn(n)
    rain = (torch.rand(n) < 0.2).float()
    wind = torch.randn(n)
    peak = torch.exp(-((hour - 8) ** 2) / 4) + 1.3 * torch.exp(-((hour - 17.5) ** 2) / 6)
    noon = torch.exp(-((hour - 14) ** 2) / 18)
    count = (1 - weekend) * peak + weekend * noon + 0.3 * temperature - 0.5 * rain
    count = count - 0.1 * wind + 0.1 * torch.randn(n)
    angle = hour * 2 * math.pi / 24
    columns = [angle.sin(), angle.cos(), (2 * angle).sin(), (2 * angle).cos(), weekend]
    x = torch.stack([*columns, temperature, rain, wind], 1)
    return (x - x.mean(0)) / x.std(0), ((count - count.mean()) / count.std()).unsqueeze(1)


x, y = make_hours(3500)
x, y, x_val, y_val = x[:2560], y[:2560], x[2560:], y[2560:]
loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(x, y), batch_size=MICRO, shuffle=True
)
model = nn.Sequential(nn.Linear(8, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.08, momentum=0.9)
criterion = nn.MSELoss()

for epoch in range(EPOCHS):
    total = 0.0
    for i, (xb, yb) in enumerate(loader):
        loss = criterion(model(xb), yb)
        total += loss.item()
        if healthy:
            loss = loss / PARTS
        loss.backward()
        if (i + 1) % PARTS == 0:
            optimizer.step()
            optimizer.zero_grad()
    if epoch % 4 == 3:
        with torch.no_grad():
            val = criterion(model(x_val), y_val).item()
        print(f"epoch {epoch + 1:3d}  train {total / len(loader):.4f}  validation {val:.4f}")
