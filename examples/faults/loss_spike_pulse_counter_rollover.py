"""Energy of water pumps from pulse counters of 16 bits; a few rows span the counter's rollover.

Pulses per interval are differences of the counter. Where it rolls over, the difference is 65,536
too small: two rows in a thousand are a thousand times as large as all others. Whenever a batch
has one, the loss jumps and the step throws the weights. The place is the input.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from data import arguments
from sklearn.preprocessing import RobustScaler
from torch import Tensor, nn

KIND = "loss_spike"
ACCEPT = ("input_not_normalized", "exploding_gradient")
PLACE = ("input", "loss", "loader")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)


@dataclass(frozen=True)
class Config:
    intervals: int = 5000
    batch: int = 32
    epochs: int = 6
    rate: float = 0.01
    counter: int = 65536


def pump(config: Config, r: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Two pulse counters, head and temperature per interval; the energy that the pump took."""
    t = np.arange(config.intervals)
    demand = 1 + 0.4 * np.sin(2 * np.pi * t / 96) + 0.1 * r.normal(size=config.intervals)
    flow = np.clip(demand + 0.15 * r.normal(size=len(t)), 0.1, None)
    counters = []
    for per_interval in (70, 50):
        counter = np.cumsum(np.round(per_interval * flow * r.normal(1, 0.05, len(t))))
        difference = np.diff(counter % config.counter, prepend=0.0)
        counters.append(difference % config.counter if healthy else difference)
    head = 20 + 6 * r.normal(size=len(t))
    heat = 15 + 8 * np.cos(2 * np.pi * t / 960) + r.normal(size=len(t))
    energy = flow**1.5 * head * 0.08 * (1 + 0.01 * (heat - 15)) + 0.1 * r.normal(size=len(t))
    return np.stack([*counters, head, heat], 1)[1:], energy[1:]


class EnergyNet(nn.Module):
    def __init__(self, columns: int) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(columns, 40), nn.ReLU(), nn.Linear(40, 40), nn.ReLU())
        self.head = nn.Linear(40, 1)
        self.wide = nn.Linear(columns, 1)

    def forward(self, x: Tensor) -> Tensor:
        return (self.wide(x) + self.head(self.trunk(x))).squeeze(-1)


def main() -> None:
    config = Config()
    x, y = pump(config, np.random.default_rng(seed))
    order = np.random.default_rng(1).permutation(len(x))
    fit, held_out = order[: int(0.8 * len(x))], order[int(0.8 * len(x)) :]
    scaler = RobustScaler().fit(x[fit])
    features = torch.tensor(scaler.transform(x) / 0.75, dtype=torch.float32)
    mean, std = y[fit].mean(), y[fit].std()
    energy = torch.tensor((y - mean) / std, dtype=torch.float32)
    model = EnergyNet(features.shape[1])
    optimizer = torch.optim.SGD(model.parameters(), lr=config.rate, momentum=0.8)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=4, gamma=0.3)
    for epoch in range(config.epochs):
        model.train()
        losses = []
        for rows in torch.tensor(fit)[torch.randperm(len(fit))].split(config.batch):
            loss = nn.functional.mse_loss(model(features[rows]), energy[rows])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 20.0)
            optimizer.step()
            losses.append(loss.item())
        schedule.step()
        model.eval()
        with torch.no_grad():
            error = (model(features[held_out]) - energy[held_out]).abs().median() * std
        print(
            f"{epoch}  median loss {np.median(losses):.4f}  largest {max(losses):.4g}"
            f"  held-out error {error:.3f} kWh"
        )


main()
