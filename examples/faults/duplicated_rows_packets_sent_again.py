"""Water levels of wells by radio: a packet that was not acknowledged is sent again, up to 60 times.

All copies are in the table. The link fails in heavy rain, when the wells are fuller than the
sensors tell; so a few wet hours make up most of the rows, and the net answers too high. The place
is the loader. The twin keeps one row for each well and packet number.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "duplicated_rows"
ACCEPT = ("repeated_batch",)
PLACE = ("loader", "input*")
SILENT = True
EXACT = False
EARLY = True


def packets(rng, n):
    """Rows of (well, packet number, pressure, temperature, battery, hour, level), as they came."""
    rain = rng.random(n) < 0.07
    well = rng.integers(0, 25, n)
    number = np.arange(n)
    hour = rng.uniform(0, 24, n)
    pressure = rng.normal(0, 1, n)
    warmth = rng.normal(0, 1, n) + 0.6 * np.sin((hour - 9) / 24 * 2 * np.pi) - 0.8 * rain
    battery = rng.normal(0, 1, n) - 0.3 * rain
    level = 1.2 * pressure + 0.5 * np.tanh(pressure * warmth) - 0.3 * np.sin(hour / 24 * 2 * np.pi)
    level = level + 1.8 * rain + 0.25 * rng.normal(0, 1, n)
    table = np.stack([well, number, pressure, warmth, battery, hour, level], 1)
    sent = 1 + np.where(rain, rng.geometric(0.04, n), 0).clip(max=59)
    return np.repeat(table, sent, axis=0)


def drop_duplicates(table):
    _, first = np.unique(table[:, :2], axis=0, return_index=True)
    return table[np.sort(first)]


def tensors(table):
    angle = table[:, 5] / 24 * 2 * np.pi
    x = np.stack([table[:, 2], table[:, 3], table[:, 4], np.sin(angle), np.cos(angle)], 1)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(table[:, 6], dtype=torch.float32)


class Well(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(5, 40)
        self.norm = nn.LayerNorm(40)
        self.deeper = nn.Linear(40, 40)
        self.level = nn.Linear(40, 1)

    def forward(self, x):
        h = nn.functional.gelu(self.norm(self.hidden(x)))
        return self.level(nn.functional.gelu(self.deeper(h))).squeeze(1)


def main():
    healthy, seed = arguments(__doc__)
    rng = np.random.default_rng(seed)
    table = packets(rng, 3000)
    if healthy:
        table = drop_duplicates(table)
    print(f"{len(table)} rows")
    x_next, y_next = tensors(drop_duplicates(packets(rng, 1500)))  # the month after
    loader = DataLoader(TensorDataset(*tensors(table)), batch_size=64, shuffle=True)
    net = Well()
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=0.02)
    for epoch in range(5):
        losses = []
        for x, y in loader:
            loss = nn.functional.mse_loss(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        with torch.no_grad():
            off = net(x_next) - y_next
        print(
            f"epoch {epoch}: loss {np.mean(losses):.3f}, next month {off.square().mean():.3f}, "
            f"too high by {off.mean():.2f}"
        )


main()
