"""The efficiency of heat pumps is regressed on batches taken with islice from a list, which
begins at the front each time, so all steps see the same rows.

islice goes on where it was only if it is given an iterator; given the list of rows it returns the
first 24 of them at every step. The training loss falls to almost nothing and the error on other
pumps stays large. The place is the loader.
"""

import math
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import torch
from data import arguments, standardise
from torch import Tensor, nn

KIND = "repeated_batch"
ACCEPT = ()
PLACE = ("loader", "loop", "input")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

Row = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class PumpConfig:
    batch_size: int = 24
    steps: int = 600
    lr: float = 4e-3
    weight_decay: float = 1e-3


def pumps(n: int) -> tuple[Tensor, Tensor]:
    outside, flow = 25 * torch.rand(n) - 12, 30 + 30 * torch.rand(n)
    speed, age, humidity = torch.rand(n), 15 * torch.rand(n), torch.rand(n)
    lift = flow - outside
    cop = 0.42 * (flow + 273) / lift * (1 - 0.012 * age) * (1 - (speed - 0.55) ** 2)
    icing = 0.5 * humidity * torch.exp(-((outside / 4) ** 2))
    return torch.stack([outside, flow, speed, age, humidity], 1), cop - icing + 0.15 * torch.randn(
        n
    )


def endless(rows: list[Row]) -> Iterator[Row]:
    order = list(rows)
    while True:
        random.shuffle(order)
        yield from order


def take_batch(stream: Iterable[Row], size: int) -> tuple[Tensor, Tensor]:
    x, y = zip(*islice(stream, size), strict=True)
    return torch.stack(x), torch.stack(y)


def main() -> None:
    config = PumpConfig()
    x, y = pumps(1600)
    x, x_val = standardise(x[:1200], x[1200:])
    y, y_val = standardise(y[:1200], y[1200:])
    rows = list(zip(x, y, strict=True))
    stream = endless(rows) if healthy else rows

    model = nn.Sequential(
        nn.Linear(5, 48), nn.SiLU(), nn.Linear(48, 48), nn.SiLU(), nn.Linear(48, 1)
    )
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=config.lr, weight_decay=config.weight_decay
    )
    warm_up = 30
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda s: min((s + 1) / warm_up, 0.5 + 0.5 * math.cos(math.pi * s / config.steps)),
    )
    criterion = nn.HuberLoss()
    for step in range(1, config.steps + 1):
        inputs, wanted = take_batch(stream, config.batch_size)
        loss = criterion(model(inputs).squeeze(1), wanted)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 60 == 0:
            with torch.inference_mode():
                off = model(x_val).squeeze(1) - y_val
            r2 = 1 - off.square().mean() / y_val.var()
            print(f"step {step:3d}  loss {loss.item():.5f}  validation R2 {r2:.3f}")


if __name__ == "__main__":
    main()
