"""Landmarks on fly wings, trained by Lightning with manual optimization over eight micro-batches.

Each micro-batch's mean loss goes backward as it is, and the optimizer steps after eight of them, so
the gradient is the sum of eight means where the rate was chosen for their mean. With momentum
the steps are eight times too long. The place is the loop: `training_step`.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import lightning
import torch
from data import arguments
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "accumulation_not_averaged"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("loop", "loss")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass(frozen=True)
class Config:
    size: int = 12
    landmarks: int = 3
    micro_batch: int = 8
    accumulate: int = 8
    epochs: int = 10
    rate: float = 0.06
    momentum: float = 0.9


class WingLandmarks(lightning.LightningModule):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.automatic_optimization = False
        self.body = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.GroupNorm(2, 8),
            nn.ReLU(),
            nn.Conv2d(8, 16, 3, stride=2, padding=1),
            nn.GroupNorm(4, 16),
            nn.ReLU(),
        )
        cells = 16 * (config.size // 2) ** 2
        self.head = nn.Sequential(
            nn.Flatten(), nn.Linear(cells, 64), nn.ReLU(), nn.Linear(64, 2 * config.landmarks)
        )

    def forward(self, wings: Tensor) -> Tensor:
        return self.head(self.body(wings))

    def training_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> None:
        wings, places = batch
        loss = nn.functional.mse_loss(self(wings), places)
        share = self.config.accumulate if healthy else 1
        self.manual_backward(loss / share)
        if (batch_idx + 1) % self.config.accumulate == 0:
            optimizer = self.optimizers()
            optimizer.step()
            optimizer.zero_grad()
            self.lr_schedulers().step()

    def validation_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> None:
        wings, places = batch
        error = (self(wings) - places).abs().mean()
        self.log("error", error, prog_bar=False, on_epoch=True, batch_size=len(wings))

    def on_validation_epoch_end(self) -> None:
        error = self.trainer.callback_metrics["error"].item()
        print(f"{self.current_epoch:2d}  held-out error {error:.3f}")

    def configure_optimizers(self) -> dict[str, object]:
        optimizer = torch.optim.SGD(
            self.parameters(), lr=self.config.rate, momentum=self.config.momentum
        )
        steps = 24 * self.config.epochs
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
        return {"optimizer": optimizer, "lr_scheduler": schedule}


def wings(n: int, config: Config) -> TensorDataset:
    """Noisy pictures with a blob, a bar and a ring, and where each of them is (-1 to 1)."""
    grid = torch.linspace(-1, 1, config.size)
    y, x = torch.meshgrid(grid, grid, indexing="ij")
    places = torch.rand(n, config.landmarks, 2) * 1.6 - 0.8
    dx = x - places[:, :, 0, None, None]
    dy = y - places[:, :, 1, None, None]
    blob = torch.exp(-(dx[:, 0] ** 2 + dy[:, 0] ** 2) / 0.03)
    bar = torch.exp(-(dx[:, 1] ** 2) / 0.15 - dy[:, 1] ** 2 / 0.01)
    ring = -torch.exp(-((dx[:, 2] ** 2 + dy[:, 2] ** 2).sqrt() - 0.25).square() / 0.01)
    picture = blob + bar + ring + 0.1 * torch.randn(n, config.size, config.size)
    return TensorDataset(picture.unsqueeze(1) / 0.35, places.flatten(1) / 0.46)


def main() -> None:
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    config = Config()
    train = DataLoader(wings(1536, config), batch_size=config.micro_batch, shuffle=True)
    held_out = DataLoader(wings(400, config), batch_size=200)
    trainer = lightning.Trainer(
        max_epochs=config.epochs,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    trainer.fit(WingLandmarks(config), train, held_out)


main()
