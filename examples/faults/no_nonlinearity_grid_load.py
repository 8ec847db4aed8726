"""Hourly load of an electricity grid by hour, weekday and temperature: the layers lack activations.

The three linear layers are stacked directly upon each other, so that the network can do no more
than a linear regression, however wide it is. It happens when a list of layer sizes is turned into
a `Sequential` in a loop and the activation is left for later. The load depends on the temperature
like a U (heating and cooling), which no straight line can follow. The place is the network,
`body`. The twin puts a GELU between the layers.
"""

from dataclasses import dataclass

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "no_nonlinearity"
ACCEPT = ("low_capacity",)
PLACE = ("body", "body.0", "body.1", "body.2", "model", "network")
SILENT = True
EXACT = True
EARLY = True


@dataclass
class Config:
    sizes: tuple = (64, 64)
    batch_size: int = 128
    lr: float = 2e-3
    weight_decay: float = 1e-4
    epochs: int = 15
    grad_clip: float = 1.0
    activation: bool = True


def make_year(seed: int):
    rng = np.random.default_rng(seed + 11)
    hour = np.tile(np.arange(24), 250)
    day = np.repeat(np.arange(250), 24)
    weekend = (day % 7 >= 5).astype(float)
    temperature = 12 - 14 * np.cos(2 * np.pi * day / 250) + 5 * np.sin(2 * np.pi * (hour - 9) / 24)
    temperature += np.repeat(rng.normal(0, 3, 250), 24)
    load = 42 + 0.5 * np.maximum(15 - temperature, 0) + 0.8 * np.maximum(temperature - 22, 0)
    working = np.exp(-(((hour - 11) / 4.0) ** 2)) + 0.8 * np.exp(-(((hour - 19) / 2.5) ** 2))
    load += 11 * working * (1 - 0.5 * weekend) - 3 * weekend + rng.normal(0, 0.8, len(load))
    x = np.stack(
        [
            np.sin(2 * np.pi * hour / 24),
            np.cos(2 * np.pi * hour / 24),
            weekend,
            (temperature - temperature.mean()) / temperature.std(),
        ],
        1,
    )
    y = (load - load.mean()) / load.std()
    order = rng.permutation(250)
    held = np.isin(day, order[:50])
    as_tensor = lambda a: torch.tensor(a, dtype=torch.float32)  # noqa: E731
    return [TensorDataset(as_tensor(x[part]), as_tensor(y[part])) for part in (~held, held)], (
        load.std()
    )


class LoadModel(nn.Module):
    def __init__(self, config: Config, inputs: int):
        super().__init__()
        layers, width = [], inputs
        for size in config.sizes:
            layers.append(nn.Linear(width, size))
            if config.activation:
                layers.append(nn.GELU())
            width = size
        layers.append(nn.Linear(width, 1))
        self.body = nn.Sequential(*layers)

    def forward(self, x):
        return self.body(x).squeeze(-1)


class Trainer:
    def __init__(self, config: Config, model, train_set, val_set, scale):
        self.config, self.model, self.scale = config, model, scale
        self.train_loader = DataLoader(train_set, config.batch_size, shuffle=True, drop_last=True)
        self.val_loader = DataLoader(val_set, 512)
        self.criterion = nn.SmoothL1Loss()
        self.optimizer = torch.optim.AdamW(
            model.parameters(), lr=config.lr, weight_decay=config.weight_decay
        )
        self.scheduler = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer,
            max_lr=config.lr * 3,
            total_steps=config.epochs * len(self.train_loader),
        )

    def train_epoch(self):
        self.model.train()
        total = 0.0
        for x, y in self.train_loader:
            self.optimizer.zero_grad(set_to_none=True)
            loss = self.criterion(self.model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), self.config.grad_clip)
            self.optimizer.step()
            self.scheduler.step()
            total += loss.item()
        return total / len(self.train_loader)

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        errors = torch.cat([(self.model(x) - y).abs() for x, y in self.val_loader])
        return errors.mean().item() * self.scale

    def fit(self):
        for epoch in range(1, self.config.epochs + 1):
            loss = self.train_epoch()
            if epoch % 3 == 0:
                print(f"epoch {epoch:2d} | loss {loss:.4f} | val MAE {self.evaluate():.3f} GW")


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    config = Config(activation=healthy)
    (train_set, val_set), scale = make_year(seed)
    Trainer(config, LoadModel(config, inputs=4), train_set, val_set, scale).fit()
