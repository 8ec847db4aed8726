"""A wind-field surrogate is trained with AdamW whose betas were scaled to the batch size, so that
its averages reach over the whole run.

A rule of a large-scale recipe keeps the memory of the optimizer constant in samples: 1 - beta
times batch size over a reference batch of 2,048. With batches of 32, 0.9 and 0.999 became 0.9984
and 0.999984: the momentum is 640 steps long in a run of 700. The place is the optimizer.
"""

from dataclasses import dataclass

import torch
from data import arguments
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "bad_optimizer_settings"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)


@dataclass
class OptimizerConfig:
    lr: float = 3e-3
    beta1: float = 0.9
    beta2: float = 0.999
    weight_decay: float = 1e-3
    reference_batch: int = 32 if healthy else 2048

    def betas(self, batch_size: int) -> tuple[float, float]:
        kappa = batch_size / self.reference_batch
        return 1 - kappa * (1 - self.beta1), 1 - kappa * (1 - self.beta2)


@dataclass
class Config:
    samples: int = 3200
    batch_size: int = 32
    epochs: int = 9
    width: int = 96


def wind_field(n: int, g: torch.Generator) -> tuple[Tensor, Tensor]:
    x = torch.rand(n, 5, generator=g) * 2 - 1
    east, north, height, hour, roughness = x.unbind(1)
    speed = 2 * (1 + height) ** (0.2 + 0.1 * roughness)
    turn = 1.5 * torch.sin(2 * east) * torch.cos(2 * north) + 0.8 * hour
    wind = torch.stack([speed * turn.cos(), speed * turn.sin()], 1)
    return x * 3**0.5, wind + 0.05 * torch.randn(n, 2, generator=g)


class Surrogate(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.stem = nn.Linear(5, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.LayerNorm(width), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width)
            )
            for _ in range(2)
        )
        self.head = nn.Linear(width, 2)

    def forward(self, x: Tensor) -> Tensor:
        h = self.stem(x)
        for block in self.blocks:
            h = h + block(h)
        return self.head(h)


class Trainer:
    def __init__(self, model: nn.Module, cfg: Config, optimizer_cfg: OptimizerConfig):
        decayed = [p for p in model.parameters() if p.ndim > 1]
        others = [p for p in model.parameters() if p.ndim <= 1]
        self.model, self.cfg = model, cfg
        self.optimizer = torch.optim.AdamW(
            [
                {"params": decayed, "weight_decay": optimizer_cfg.weight_decay},
                {"params": others, "weight_decay": 0.0},
            ],
            lr=optimizer_cfg.lr,
            betas=optimizer_cfg.betas(cfg.batch_size),
        )

    def fit(self, train: DataLoader, x_val: Tensor, y_val: Tensor) -> None:
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(
            self.optimizer, self.cfg.epochs * len(train), eta_min=1e-5
        )
        for epoch in range(self.cfg.epochs):
            self.model.train()
            total = 0.0
            for x, y in train:
                loss = nn.functional.mse_loss(self.model(x), y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                scheduler.step()
                total += loss.item()
            self.model.eval()
            with torch.no_grad():
                val = nn.functional.mse_loss(self.model(x_val), y_val).item()
            print(f"epoch {epoch + 1:2d}  train {total / len(train):.4f}  val {val:.4f}")


def main() -> None:
    cfg = Config()
    g = torch.Generator().manual_seed(800 + seed)
    x, y = wind_field(cfg.samples, g)
    x_val, y_val = wind_field(600, g)
    mean, std = y.mean(0), y.std(0)
    y, y_val = (y - mean) / std, (y_val - mean) / std
    loader = DataLoader(TensorDataset(x, y), batch_size=cfg.batch_size, shuffle=True)
    Trainer(Surrogate(cfg.width), cfg, OptimizerConfig()).fit(loader, x_val, y_val)


main()
