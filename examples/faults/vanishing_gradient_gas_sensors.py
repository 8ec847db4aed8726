"""Five gases from sixteen sensor channels by a deep MLP whose activations are sigmoids.

Twelve sigmoid layers in a row: each multiplies the gradient by at most a quarter of its weights,
so the first layers get gradients some millions of times smaller than the last and the loss stays
at that of guessing. The place is the first layers (net.0 and following).
"""

import copy
from dataclasses import dataclass

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "vanishing_gradient"
ACCEPT = ("saturated_activation",)
PLACE = ("net*",)
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass
class Config:
    n: int = 3000
    channels: int = 16
    gases: int = 5
    width: int = 32
    depth: int = 12
    batch_size: int = 64
    epochs: int = 16
    lr: float = 0.02
    momentum: float = 0.9


def gas_table(cfg):
    r = np.random.default_rng(90 + seed)
    y = r.integers(0, cfg.gases, cfg.n)
    concentration = r.lognormal(0, 0.6, cfg.n)[:, None]
    gain, power = (
        r.uniform(0.2, 2, (cfg.gases, cfg.channels)),
        r.uniform(0.3, 1.2, (cfg.gases, cfg.channels)),
    )
    x = np.log1p(gain[y] * concentration ** power[y]) + 0.25 * r.normal(size=(cfg.n, cfg.channels))
    x += (
        0.25 * r.normal(size=(cfg.n, 1))
        + 0.1 * r.normal(size=(cfg.n, 1)) * np.arange(cfg.channels) / 8
    )
    cut = int(0.75 * cfg.n)
    x = (x - x[:cut].mean(0)) / x[:cut].std(0)
    x, y = torch.tensor(x, dtype=torch.float32), torch.tensor(y)
    return (x[:cut], y[:cut]), (x[cut:], y[cut:])


class DeepNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        activation = nn.ReLU if healthy else nn.Sigmoid
        layers, width = [], cfg.channels
        for _ in range(cfg.depth):
            linear = nn.Linear(width, cfg.width)
            nn.init.kaiming_normal_(linear.weight, nonlinearity="relu")
            nn.init.zeros_(linear.bias)
            layers += [linear, activation()]
            width = cfg.width
        self.net = nn.Sequential(*layers)
        self.head = nn.Linear(width, cfg.gases)

    def forward(self, x):
        return self.head(self.net(x))


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        logits = model(x)
    return nn.functional.cross_entropy(logits, y).item(), (
        logits.argmax(1) == y
    ).float().mean().item()


def run(cfg):
    (x, y), (x_val, y_val) = gas_table(cfg)
    model = DeepNet(cfg)
    optimizer = torch.optim.SGD(
        model.parameters(), cfg.lr, momentum=cfg.momentum, weight_decay=1e-4
    )
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=8, gamma=0.3)
    best, state = float("inf"), None
    for epoch in range(cfg.epochs):
        model.train()
        running = 0.0
        for rows in torch.randperm(len(x)).split(cfg.batch_size):
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            running += loss.item() * len(rows)
        scheduler.step()
        val_loss, accuracy = evaluate(model, x_val, y_val)
        print(
            f"epoch {epoch:2d}: train {running / len(x):.4f} val {val_loss:.4f} acc {accuracy:.4f}"
        )
        if val_loss < best:
            best, state = val_loss, copy.deepcopy(model.state_dict())
    model.load_state_dict(state)
    val_loss, accuracy = evaluate(model, x_val, y_val)
    print(f"best: val loss {val_loss:.4f}, accuracy {accuracy:.4f}")


run(Config())
