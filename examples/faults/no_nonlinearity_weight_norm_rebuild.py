"""Hull resistance of ships; a helper rebuilds the net and keeps only its linear layers.

`with_weight_norm` puts weight normalisation on each linear layer and makes a new Sequential of
them. The activations between are not linear layers and are left out: the four layers are one
linear map. The place is the model: `net`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from data import arguments
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

if TYPE_CHECKING:
    from collections.abc import Iterator

KIND = "no_nonlinearity"
ACCEPT = ("low_capacity",)
PLACE = ("model", "net", "net.*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


def with_weight_norm(layers: nn.Sequential) -> nn.Sequential:
    rebuilt = []
    for layer in layers:
        if isinstance(layer, nn.Linear):
            rebuilt.append(weight_norm(layer))
        elif healthy:
            rebuilt.append(layer)
    return nn.Sequential(*rebuilt)


class HullNet(nn.Module):
    def __init__(self, readings: int, width: int = 48) -> None:
        super().__init__()
        self.net = with_weight_norm(
            nn.Sequential(
                nn.Linear(readings, width),
                nn.SiLU(),
                nn.Linear(width, width),
                nn.SiLU(),
                nn.Linear(width, width),
                nn.SiLU(),
                nn.Linear(width, 1),
            )
        )

    def forward(self, readings: Tensor) -> Tensor:
        return self.net(readings).squeeze(-1)


def voyages(n: int, r: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    speed = r.uniform(4, 14, n)
    draught = r.uniform(4, 9, n)
    heading = r.uniform(-np.pi, np.pi, n)
    wave = r.gamma(2.0, 0.8, n)
    trim = r.normal(0, 0.6, n)
    friction = 0.9 * speed**1.9 * draught**0.5
    hump = 180 * np.exp(-((speed - 10.5) ** 2))
    added = 25 * wave**1.5 * np.cos(heading / 2) ** 4
    resistance = friction + hump + added + 45 * (trim - 0.2) ** 2
    readings = np.stack([speed, draught, heading, wave, trim], 1)
    return readings, resistance * r.normal(1, 0.04, n)


def shuffled(n: int, size: int) -> Iterator[Tensor]:
    while True:
        yield from torch.randperm(n).split(size)


def main() -> None:
    x, y = voyages(3000, np.random.default_rng(seed))
    x, x_val, y, y_val = train_test_split(x, y, test_size=0.25, random_state=seed)
    scale_x, scale_y = StandardScaler().fit(x), StandardScaler().fit(y[:, None])
    x, x_val = (torch.tensor(scale_x.transform(p), dtype=torch.float32) for p in (x, x_val))
    y = torch.tensor(scale_y.transform(y[:, None])[:, 0], dtype=torch.float32)

    model = HullNet(x.shape[1])
    averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.98))
    optimizer = torch.optim.RAdam(model.parameters(), lr=5e-3)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9985)
    steps = shuffled(len(x), 96)
    for step in range(1, 1251):
        rows = next(steps)
        loss = nn.functional.smooth_l1_loss(model(x[rows]), y[rows], beta=0.5)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        averaged.update_parameters(model)
        if step % 125 == 0:
            averaged.eval()
            with torch.no_grad():
                guess = scale_y.inverse_transform(averaged(x_val).numpy()[:, None])[:, 0]
            print(f"{step}  loss {loss.item():.4f}  held-out R2 {r2_score(y_val, guess):.3f}")


main()
