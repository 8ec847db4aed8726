"""A pump's power is predicted from its sensors in SI units as they come: pressures in pascal, a
flow in cubic metres per second, temperature in kelvin.

One column is around 300,000 and another around 0.004, so the first layer sees only the pressures
and the flow, which matters as much, never gets a say. The place is the input of the first layer.
"""

from dataclasses import dataclass

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "input_not_normalized"
ACCEPT = ()
PLACE = ("input*", "0", "net.0", "loader", "")
SILENT = True
EXACT = False
EARLY = True


@dataclass
class Config:
    width: int = 48
    lr: float = 3e-3
    epochs: int = 12
    batch: int = 64
    scale_inputs: bool = True


def log_book(rng, n):
    inlet = rng.normal(101_325, 4_000, n)
    outlet = rng.normal(310_000, 45_000, n)
    flow = rng.gamma(6.0, 0.0007, n)
    kelvin = rng.normal(297, 9, n)
    rpm = rng.normal(1_450, 120, n)
    efficiency = 0.7 - 6e-7 * (rpm - 1_450) ** 2 - 0.003 * (kelvin - 297)
    power = (outlet - inlet) * flow / efficiency + rng.normal(0, 25, n)
    return np.stack([inlet, outlet, flow, kelvin, rpm], 1), power


healthy, seed = arguments(__doc__)
config = Config(scale_inputs=healthy)
features, power = log_book(np.random.default_rng(seed), 2600)
x = torch.tensor(features, dtype=torch.float32)
y = torch.tensor((power - power[:2000].mean()) / power[:2000].std(), dtype=torch.float32)[:, None]
if config.scale_inputs:
    x = (x - x[:2000].mean(0)) / x[:2000].std(0)

net = nn.Sequential(
    nn.Linear(5, config.width),
    nn.SiLU(),
    nn.Linear(config.width, config.width),
    nn.SiLU(),
    nn.Linear(config.width, 1),
)
optimizer = torch.optim.AdamW(net.parameters(), lr=config.lr)
steps = config.epochs * (2000 // config.batch)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
criterion = nn.MSELoss()
loader = DataLoader(
    TensorDataset(x[:2000], y[:2000]), batch_size=config.batch, shuffle=True, drop_last=True
)
for epoch in range(config.epochs):
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(net(xb), yb)
        loss.backward()
        optimizer.step()
        schedule.step()
    with torch.no_grad():
        r2 = 1 - criterion(net(x[2000:]), y[2000:]) / y[2000:].var()
    print(f"epoch {epoch}: loss {loss.item():.4f}  validation R2 {r2.item():.3f}")
