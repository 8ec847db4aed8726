"""A furnace-quality table read by a highway network whose gate bias has the wrong sign.

The gates of 28 highway layers should begin nearly closed, to carry their input. With +3 in place
of -3 each lets its tanh layer replace the input: a plain deep tanh network, in which the gradient
of the first layers is millions of times smaller than that of the last. The place is `highway`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from data import arguments
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer, StandardScaler
from torch import Tensor, nn

if TYPE_CHECKING:
    import numpy as np

KIND = "vanishing_gradient"
ACCEPT = ("poor_weight_init",)
PLACE = ("model", "inlet*", "highway*")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass(frozen=True)
class Config:
    depth: int = 28
    width: int = 24
    gate_bias: float = -3.0 if healthy else 3.0
    batch: int = 64
    epochs: int = 12
    rate: float = 0.05


class Highway(nn.Module):
    def __init__(self, width: int, gate_bias: float) -> None:
        super().__init__()
        self.transform = nn.Linear(width, width)
        self.gate = nn.Linear(width, width)
        nn.init.constant_(self.gate.bias, gate_bias)

    def forward(self, x: Tensor) -> Tensor:
        gate = self.gate(x).sigmoid()
        return gate * self.transform(x).tanh() + (1 - gate) * x


class QualityNet(nn.Module):
    def __init__(self, columns: int, grades: int, config: Config) -> None:
        super().__init__()
        self.inlet = nn.Linear(columns, config.width)
        self.highway = nn.Sequential(
            *(Highway(config.width, config.gate_bias) for _ in range(config.depth))
        )
        self.head = nn.Linear(config.width, grades)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.highway(self.inlet(x).tanh()))


def melts() -> tuple[np.ndarray, ...]:
    x, y = make_classification(
        n_samples=2400,
        n_features=16,
        n_informative=8,
        n_redundant=3,
        n_classes=4,
        n_clusters_per_class=2,
        class_sep=1.6,
        flip_y=0.02,
        random_state=seed,
    )
    x, x_val, y, y_val = train_test_split(x, y, test_size=0.25, stratify=y, random_state=seed)
    table = make_pipeline(
        QuantileTransformer(n_quantiles=200, output_distribution="normal"), StandardScaler()
    )
    return table.fit_transform(x), table.transform(x_val), y, y_val


def main() -> None:
    config = Config()
    x, x_val, y, y_val = (torch.from_numpy(part) for part in melts())
    x, x_val = x.float(), x_val.float()
    model = QualityNet(x.shape[1], 4, config)
    optimizer = torch.optim.SGD(model.parameters(), lr=config.rate, momentum=0.9)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.3, patience=3)
    for epoch in range(config.epochs):
        model.train()
        total = 0.0
        for rows in torch.randperm(len(x)).split(config.batch):
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows) / len(x)
        model.eval()
        with torch.no_grad():
            logits = model(x_val)
            held_out = nn.functional.cross_entropy(logits, y_val)
        plateau.step(held_out)
        first = model.inlet.weight.grad.norm() / model.head.weight.grad.norm()
        right = (logits.argmax(1) == y_val).float().mean()
        print(f"{epoch:2d}  loss {total:.3f}  held out {right:.3f}  first to last {first:.1e}")


main()
