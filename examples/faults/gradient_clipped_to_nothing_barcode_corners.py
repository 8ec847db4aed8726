"""A regression of barcode corners trains by SGD in Lightning with gradient_clip_val=1e-3.

The gradients have norms of about one and are scaled down to a thousandth at each step; SGD then
moves the weights by next to nothing and the error stays that of guessing the middle. The place is
the loop: the Trainer's gradient_clip_val.
"""

import logging
import warnings
from dataclasses import dataclass

import lightning as L
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "gradient_clipped_to_nothing"
ACCEPT = ()
PLACE = ("loop", "optimizer")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")


@dataclass(frozen=True)
class Config:
    side: int = 24
    lr: float = 0.03
    momentum: float = 0.9
    batch_size: int = 32
    epochs: int = 8
    gradient_clip_val: float = 1.0 if healthy else 1e-3


def labels_on_boxes(count: int, side: int, g: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Noisy pictures with a striped label, and its box as (left, top, right, bottom) in [-1, 1]."""
    size = torch.randint(6, 13, (count, 2), generator=g)
    start = (torch.rand(count, 2, generator=g) * (side - size)).long()
    end = start + size
    row, column = torch.arange(side).view(1, -1, 1), torch.arange(side).view(1, 1, -1)
    left, top, right, bottom = (
        v.view(-1, 1, 1) for v in (start[:, 0], start[:, 1], end[:, 0], end[:, 1])
    )
    inside = (row >= top) & (row < bottom) & (column >= left) & (column < right)
    stripes = 1.0 + 0.5 * ((column - left) % 3 == 0)
    image = inside * stripes + 0.4 * torch.randn(count, side, side, generator=g)
    box = torch.cat([start, end], 1) / side * 2 - 1
    return ((image - image.mean()) / image.std()).unsqueeze(1), box


class CornerNet(L.LightningModule):
    def __init__(self, cfg: Config) -> None:
        super().__init__()
        self.cfg = cfg
        self.body = nn.Sequential(
            nn.Conv2d(1, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
            nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten(),
        )  # fmt: skip
        self.corners = nn.Linear(16 * (cfg.side // 4) ** 2, 4)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.corners(self.body(image))

    def training_step(self, batch: list[torch.Tensor], index: int) -> torch.Tensor:
        image, box = batch
        return F.smooth_l1_loss(self(image), box)

    def validation_step(self, batch: list[torch.Tensor], index: int) -> None:
        image, box = batch
        pixels = (self(image) - box).abs().mean() * self.cfg.side / 2
        print(f"epoch {self.current_epoch}: mean error of a side {pixels:.2f} pixels")

    def configure_optimizers(self) -> dict:
        optimizer = torch.optim.SGD(
            self.parameters(), lr=self.cfg.lr, momentum=self.cfg.momentum, nesterov=True
        )
        steps = self.trainer.estimated_stepping_batches
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def main() -> None:
    cfg, g = Config(), torch.Generator().manual_seed(seed)
    train, val = labels_on_boxes(1200, cfg.side, g), labels_on_boxes(300, cfg.side, g)
    trainer = L.Trainer(
        max_epochs=cfg.epochs, accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0,
        gradient_clip_val=cfg.gradient_clip_val,
    )  # fmt: skip
    loader = DataLoader(TensorDataset(*train), cfg.batch_size, shuffle=True, drop_last=True)
    trainer.fit(CornerNet(cfg), loader, DataLoader(TensorDataset(*val), 300))


main()
