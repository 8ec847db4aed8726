"""A sine network stores a terrain map; its hidden layers are made for a factor of 30 in the sine
that only the first layer has, so the signal dies from layer to layer.

They took the weights of the sine networks' paper, uniform within sqrt(6 / n) / omega, but wrote
the factor omega into the first activation alone. Every further layer then shrinks what passes by
about thirty, forward and backward. The place is the first layers, whose gradient vanishes.
"""

import math
from dataclasses import dataclass

import torch
from data import arguments
from torch import Tensor, nn

KIND = "vanishing_gradient"
ACCEPT = ("poor_weight_init",)
PLACE = ("layers*", "model")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass
class Config:
    points: int = 6000
    width: int = 64
    depth: int = 10
    omega: float = 30.0
    lr: float = 5e-5
    batch_size: int = 256
    steps: int = 600


class Terrain:
    def __init__(self, g: torch.Generator):
        self.frequency = 8.0 * torch.randn(2, 24, generator=g)
        self.phase = 6.28 * torch.rand(24, generator=g)
        self.height = torch.randn(24, generator=g) / (1 + self.frequency.norm(dim=0) / 4)

    def __call__(self, at: Tensor) -> Tensor:
        return torch.sin(at @ self.frequency + self.phase) @ self.height


class SineLayer(nn.Module):
    def __init__(self, n_in: int, n_out: int, omega: float, first: bool):
        super().__init__()
        self.linear = nn.Linear(n_in, n_out)
        bound = 1 / n_in if first else math.sqrt(6 / n_in) / omega
        nn.init.uniform_(self.linear.weight, -bound, bound)
        nn.init.uniform_(self.linear.bias, -bound, bound)
        self.omega = omega if first or healthy else 1.0

    def forward(self, x: Tensor) -> Tensor:
        return torch.sin(self.omega * self.linear(x))


class TerrainNet(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        layers: list[nn.Module] = [SineLayer(2, cfg.width, cfg.omega, first=True)]
        layers += [
            SineLayer(cfg.width, cfg.width, cfg.omega, first=False) for _ in range(cfg.depth - 1)
        ]
        self.layers = nn.Sequential(*layers)
        self.out = nn.Linear(cfg.width, 1)

    def forward(self, at: Tensor) -> Tensor:
        return self.out(self.layers(at)).squeeze(1)


def main() -> None:
    cfg = Config()
    g = torch.Generator().manual_seed(1700 + seed)
    terrain = Terrain(g)
    at = torch.rand(cfg.points, 2, generator=g) * 2 - 1
    at_val = torch.rand(1000, 2, generator=g) * 2 - 1
    height, height_val = terrain(at), terrain(at_val)
    mean, std = height.mean(), height.std()
    height = (height - mean) / std + 0.05 * torch.randn(cfg.points, generator=g)
    height_val = (height_val - mean) / std
    model = TerrainNet(cfg)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, cfg.steps)
    for step in range(1, cfg.steps + 1):
        rows = torch.randint(0, cfg.points, (cfg.batch_size,), generator=g)
        loss = nn.functional.mse_loss(model(at[rows]), height[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 100 == 0:
            with torch.no_grad():
                val = nn.functional.mse_loss(model(at_val), height_val)
            first = model.layers[0].linear.weight.grad.norm().item()
            print(
                f"step {step}  loss {loss.item():.4f}  val {val.item():.4f}  "
                f"first layer's gradient {first:.1e}"
            )


main()
