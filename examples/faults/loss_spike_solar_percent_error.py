"""Solar forecast by percentage error; hours at dawn with almost no yield make the loss leap.

The person trained on the percentage error because the report asks for it. It divides by the true
yield, which at dawn is less than a watt in a plant of many kilowatts, so that a batch with such an
hour has a loss a hundred times as large, and its step, even if clipped, goes astray. The place is
the loss.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "loss_spike"
ACCEPT = ("wrong_loss", "exploding_gradient", "division_by_zero_norm")
PLACE = ("loss", "input", "labels", "loop")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)


def plant_hours(count, rng):
    """Weather of single hours and the yield in kW; one hour in 700 is at dawn."""
    height = rng.uniform(0.15, 1.0, count)
    dawn = rng.random(count) < 0.0015
    height[dawn] = 10 ** rng.uniform(-5.5, -3.5, dawn.sum())
    cloud = rng.beta(1.2, 1.8, count)
    heat = rng.normal(18, 8, count)
    dust = rng.exponential(0.4, count)
    share = height * (1 - 0.75 * cloud**2) * (1 - 0.004 * (heat - 25)) * np.exp(-0.15 * dust)
    kilowatts = 12 * share * rng.lognormal(0, 0.05, count)
    measured = height + rng.normal(0, 0.015, count)
    weather = np.stack([measured, cloud, heat, dust, rng.normal(size=count)], 1)
    return weather.astype(np.float32), kilowatts.astype(np.float32)


class PercentageError(nn.Module):
    """Mean of |forecast - yield| as a share of the yield."""

    def __init__(self, floor):
        super().__init__()
        self.floor = floor

    def forward(self, forecast, actual):
        return ((forecast - actual).abs() / actual.abs().clamp(min=self.floor)).mean()


class Forecaster(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(features, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1)
        )

    def forward(self, weather):
        return self.body(weather).squeeze(1)


def run_epoch(model, loader, criterion, optimizer):
    model.train()
    losses = []
    for weather, actual in loader:
        optimizer.zero_grad()
        loss = criterion(model(weather), actual)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        losses.append(loss.item())
    return np.array(losses)


def main():
    rng = np.random.default_rng(seed)
    x, y = plant_hours(4000, rng)
    x_val, y_val = plant_hours(1500, rng)
    mean, std = x.mean(0), x.std(0)
    x, x_val = torch.from_numpy((x - mean) / std), torch.from_numpy((x_val - mean) / std)
    y, y_val = torch.from_numpy(y), torch.from_numpy(y_val)
    loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)

    model = Forecaster(x.shape[1])
    criterion = PercentageError(floor=2.0 if healthy else 1e-8)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 25)
    for epoch in range(25):
        losses = run_epoch(model, loader, criterion, optimizer)
        schedule.step()
        if epoch % 4 == 0:
            model.eval()
            with torch.no_grad():
                off = (model(x_val) - y_val).abs()
            print(
                f"epoch {epoch:2d} loss median {np.median(losses):.3f} largest {losses.max():.2f} "
                f"val mae {off.mean():.3f} kW"
            )
    print(f"a constant answer is off by {(y_val - y_val.median()).abs().mean():.3f} kW")


main()
