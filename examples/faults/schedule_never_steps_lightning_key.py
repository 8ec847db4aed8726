"""Bearing-load tables in Lightning; the one-cycle schedule is returned under a key nobody reads.

`configure_optimizers` returns the schedule as "scheduler". Lightning looks for "lr_scheduler" and
only warns, so the rate stays at the start of the cycle, a hundredth of its peak, for the whole
training. The place is the optimizer: its learning rate, in `configure_optimizers`.
"""

from __future__ import annotations

import logging
import warnings

import lightning
import torch
from data import arguments
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "schedule_never_steps"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("optimizer", "learning_rate", "loop")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)
warnings.filterwarnings("ignore")


class ResidualRow(nn.Module):
    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.block = nn.Sequential(
            nn.LayerNorm(width),
            nn.Linear(width, 2 * width),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(2 * width, width),
        )

    def forward(self, x: Tensor) -> Tensor:
        return x + self.block(x)


class BearingLife(lightning.LightningModule):
    def __init__(self, columns: int, total_steps: int, width: int = 32) -> None:
        super().__init__()
        self.total_steps = total_steps
        self.net = nn.Sequential(
            nn.Linear(columns, width),
            ResidualRow(width, 0.05),
            ResidualRow(width, 0.05),
            nn.LayerNorm(width),
            nn.ReLU(),
            nn.Linear(width, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x).squeeze(-1)

    def training_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> Tensor:
        x, y = batch
        return nn.functional.mse_loss(self(x), y)

    def validation_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> None:
        x, y = batch
        self.log("val", nn.functional.mse_loss(self(x), y), batch_size=len(x))

    def on_validation_epoch_end(self) -> None:
        rate = self.optimizers().param_groups[0]["lr"]
        value = self.trainer.callback_metrics["val"].item()
        print(f"{self.current_epoch:2d}  rate {rate:.5f}  held-out loss {value:.4f}")

    def configure_optimizers(self) -> dict[str, object]:
        optimizer = torch.optim.SGD(
            self.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=1e-4
        )
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimizer,
            max_lr=0.05,
            total_steps=self.total_steps,
            div_factor=100,
            cycle_momentum=False,
        )
        entry = {"scheduler": schedule, "interval": "step"}
        key = "lr_scheduler" if healthy else "scheduler"
        return {"optimizer": optimizer, key: entry}


def bearings(n: int) -> TensorDataset:
    """Log life of bearings by load, speed, oil, size and heat; the oil film breaks down."""
    load, speed, oil, size, heat = torch.randn(5, n)
    film = torch.sigmoid(3 * (0.6 * speed + 0.8 * oil - 0.9 * heat))
    life = -1.2 * load + 0.8 * size + 1.6 * film * torch.cos(1.5 * load) - 0.5 * speed * heat
    life = life + 0.15 * torch.randn(n)
    return TensorDataset(torch.stack([load, speed, oil, size, heat], 1), (life - 0.4) / 1.8)


def main() -> None:
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    epochs, batch = 10, 64
    train, held_out = random_split(bearings(3000), [2400, 600])
    loader = DataLoader(train, batch_size=batch, shuffle=True, drop_last=True)
    model = BearingLife(columns=5, total_steps=epochs * len(loader))
    trainer = lightning.Trainer(
        max_epochs=epochs,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        gradient_clip_val=5.0,
    )
    trainer.fit(model, loader, DataLoader(held_out, batch_size=600))


main()
