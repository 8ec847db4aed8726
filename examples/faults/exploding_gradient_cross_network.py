"""Rents from a deep cross network whose eight cross layers have no normalisation between them.

Each cross layer multiplies by the input again, so the last one is a polynomial of degree nine of
the features. Where a flat is unusual, the activations and the gradients grow from layer to layer
by orders of magnitude and steps are thrown. The place is the model: `cross`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from data import arguments
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "exploding_gradient"
ACCEPT = ("loss_spike",)
PLACE = ("model", "cross", "cross.*")
SILENT = False
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass(frozen=True)
class Config:
    numbers: int = 8
    districts: int = 20
    width: int = 8
    layers: int = 8
    batch: int = 64
    epochs: int = 7
    rate: float = 2e-3


class CrossLayer(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Linear(width, width)
        nn.init.orthogonal_(self.weight.weight)
        self.norm = nn.LayerNorm(width) if healthy else nn.Identity()

    def forward(self, first: Tensor, x: Tensor) -> Tensor:
        return self.norm(first * self.weight(x) + x)


class RentModel(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width = config.numbers + config.width
        self.district = nn.Embedding(config.districts, config.width)
        self.cross = nn.ModuleList(CrossLayer(width) for _ in range(config.layers))
        self.deep = nn.Sequential(nn.Linear(width, 48), nn.ReLU(), nn.Linear(48, 16), nn.ReLU())
        self.head = nn.Linear(width + 16, 1)

    def forward(self, numbers: Tensor, district: Tensor) -> Tensor:
        first = torch.cat([numbers, self.district(district)], -1)
        x = first
        for layer in self.cross:
            x = layer(first, x)
        return self.head(torch.cat([x, self.deep(first)], -1)).squeeze(-1)


def flats(n: int, config: Config) -> TensorDataset:
    numbers = torch.randn(n, config.numbers)
    area, floor, age, light, transit = numbers.T[:5]
    district = torch.randint(0, config.districts, (n,))
    level = torch.randn(config.districts)[district]
    rent = area * (1 + 0.4 * level) + 0.5 * level + 0.4 * light * floor
    rent = rent - 0.4 * age + 0.3 * transit * level + 0.2 * torch.randn(n)
    return TensorDataset(numbers, district, (rent - rent.mean()) / rent.std())


def main() -> None:
    config = Config()
    n, cut = 4000, 3200
    rows = flats(n, config).tensors
    train = TensorDataset(*(part[:cut] for part in rows))
    held_out = [part[cut:] for part in rows]
    loader = DataLoader(train, batch_size=config.batch, shuffle=True)
    model = RentModel(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.rate, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, config.epochs * len(loader))
    for epoch in range(config.epochs):
        model.train()
        total, largest = 0.0, 0.0
        for numbers, district, rent in loader:
            loss = nn.functional.mse_loss(model(numbers, district), rent)
            optimizer.zero_grad()
            loss.backward()
            norm = nn.utils.get_total_norm([p.grad for p in model.parameters()])
            optimizer.step()
            schedule.step()
            total += loss.item() / len(loader)
            largest = max(largest, norm.item())
        model.eval()
        with torch.no_grad():
            error = nn.functional.mse_loss(model(*held_out[:2]), held_out[2])
        print(f"{epoch}  loss {total:.4g}  largest norm {largest:.3g}  held out {error:.4g}")


main()
