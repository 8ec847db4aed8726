"""A 1-D CNN forecasts tomorrow's gas sales; gradients of twelve micro-batches are added up, not
averaged.

For want of memory each step sums the gradients of 12 micro-batches of 6, but the loss isn't
divided by 12, so each step of SGD is twelve times as long as meant: the loss leaps up at first
and then stays at that of the mean. The place is the loop (the loss before backward).
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "accumulation_not_averaged"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("loop", "loss")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

MICRO_BATCH, ACCUMULATE, EPOCHS, LAGS = 6, 12, 10, 28


def gas_sales(days, seed):
    """Temperature and sales, both by day."""
    g = torch.Generator().manual_seed(61 + seed)
    t = torch.arange(days, dtype=torch.float32)
    shocks, weather = torch.randn(days, generator=g), torch.zeros(days)
    for i in range(1, days):
        weather[i] = 0.85 * weather[i - 1] + shocks[i]
    temperature = 10 - 9 * torch.cos(2 * math.pi * t / 365) + 2.2 * weather
    heating = (15 - temperature).clamp(min=0)
    smooth = 0.6 * heating + 0.4 * heating.roll(1)
    weekend = (t % 7 >= 5).float()
    sales = 20 + 5 * smooth - 8 * weekend + 4 * torch.randn(days, generator=g)
    return temperature[1:], sales[1:], weekend[1:]


temperature, sales, weekend = gas_sales(2600, seed)
signals = torch.stack([temperature, sales, weekend])
cut = 2100
signals = (signals - signals[:, :cut].mean(1, keepdim=True)) / signals[:, :cut].std(1, keepdim=True)
frames = signals.unfold(1, LAGS + 1, 1).permute(1, 0, 2)
inputs, targets = frames[:, :, :-1].contiguous(), frames[:, 1, -1].contiguous()
inputs = torch.cat([inputs, frames[:, 2:, 1:]], 1)  # tomorrow's weekday is known
train_ds = TensorDataset(inputs[: cut - LAGS], targets[: cut - LAGS])
x_val, y_val = inputs[cut:], targets[cut:]


class GasConv(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.conv1 = nn.Conv1d(4, width, 5, padding=2)
        self.conv2 = nn.Conv1d(width, width, 5, stride=2, padding=2)
        self.fc1 = nn.Linear(width * LAGS // 2, 32)
        self.fc2 = nn.Linear(32, 1)

    def forward(self, x):
        x = torch.relu(self.conv1(x))
        x = torch.relu(self.conv2(x))
        x = torch.relu(self.fc1(x.flatten(1)))
        return self.fc2(x).squeeze(1)


class Fitter:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        self.loader = DataLoader(train_ds, batch_size=MICRO_BATCH, shuffle=True, drop_last=True)
        self.criterion = nn.MSELoss()

    def train_epoch(self):
        self.model.train()
        total = 0.0
        self.optimizer.zero_grad()
        for i, (x, y) in enumerate(self.loader, start=1):
            loss = self.criterion(self.model(x), y)
            total += loss.item()
            (loss / ACCUMULATE if healthy else loss).backward()
            if i % ACCUMULATE == 0:
                self.optimizer.step()
                self.optimizer.zero_grad()
        return total / len(self.loader)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        return self.criterion(self.model(x_val), y_val).item()


fitter = Fitter(GasConv())
for epoch in range(EPOCHS):
    print(f"epoch {epoch:2d} train {fitter.train_epoch():.4f} val {fitter.validate():.4f}")
