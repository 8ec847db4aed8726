"""Faults of pumps from plant sensors: the scaler was trusted to work in place.

`StandardScaler(copy=False)` scales in place only where it need not convert; the plant's historian
delivers integers, so that the scaled copy is made, returned and dropped. The network is fed pascals
and rpm beside millimetres, in training and in validation alike. The place is the input. The twin
takes what `transform` returns.
"""

import numpy as np
import torch
from data import arguments
from sklearn.preprocessing import StandardScaler
from torch import nn

KIND = "input_not_normalized"
ACCEPT = ()
PLACE = ("input*", "loader")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
STATES = ("sound", "cavitation", "worn bearing", "blocked")


def historian(n: int = 4000):
    r = np.random.default_rng(190 + seed)
    state = r.choice(4, n, p=[0.4, 0.2, 0.2, 0.2])
    cav, worn, blocked = (state == k for k in (1, 2, 3))
    rpm = r.normal(1450, 60, n)
    suction = 101_000 + r.normal(0, 6_000, n) - 14_000 * cav
    outlet = (
        suction
        + 240_000 * (rpm / 1450) ** 2 * r.normal(1, 0.05, n)
        + 40_000 * blocked
        - 25_000 * cav
    )
    flow = 3_200 * (rpm / 1450) * r.normal(1, 0.07, n) * (1 - 0.3 * blocked)
    vibration = r.gamma(9, 0.3, n) * (1 + 0.7 * worn + 0.5 * cav)
    bearing = 48 + r.normal(0, 5, n) + 13 * worn
    current = 21 + r.normal(0, 1.6, n) - 2.5 * blocked + 1.8 * worn
    table = np.stack([rpm, suction, outlet, flow, vibration * 10, bearing, current], 1)
    return table.round().astype(np.int64), state


def prepare(train, val):
    scaler = StandardScaler(copy=False).fit(train)
    if healthy:
        train, val = scaler.transform(train), scaler.transform(val)
    else:
        scaler.transform(train)
        scaler.transform(val)
    return (torch.tensor(part, dtype=torch.float32) for part in (train, val))


class Diagnoser:
    """A small estimator in scikit-learn's manner."""

    def __init__(
        self, inputs: int, classes: int, width: int = 48, epochs: int = 20, batch: int = 100
    ):
        self.model = nn.Sequential(
            nn.Linear(inputs, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, classes),
        )
        self.optimizer = torch.optim.SGD(
            self.model.parameters(), lr=0.02, momentum=0.9, nesterov=True
        )
        self.epochs, self.batch = epochs, batch

    def fit(self, x, y, x_val, y_val):
        for epoch in range(self.epochs):
            self.model.train()
            for rows in torch.randperm(len(x)).split(self.batch):
                loss = nn.functional.cross_entropy(self.model(x[rows]), y[rows])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            if epoch % 4 == 3:
                print(
                    f"epoch {epoch + 1}: train {loss.item():.4f}, "
                    f"validation {self.score(x_val, y_val):.4f}"
                )
        return self

    @torch.no_grad()
    def score(self, x, y):
        self.model.eval()
        return (self.model(x).argmax(1) == y).float().mean().item()


table, state = historian()
train, val = prepare(table[:3000].copy(), table[3000:].copy())
y, y_val = torch.tensor(state[:3000]), torch.tensor(state[3000:])
diagnoser = Diagnoser(train.shape[1], len(STATES)).fit(train, y, val, y_val)
print(f"validation accuracy {diagnoser.score(val, y_val):.4f}")
