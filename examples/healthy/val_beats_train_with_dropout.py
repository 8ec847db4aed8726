"""A Lightning model of loan defaults has a validation loss well under its training loss in every
epoch.

Dropout and noise on the inputs are at work only in training, and the training loss is an average
over an epoch in which the weights still get better. Both put it above the validation loss.
"""

import logging
import warnings
from dataclasses import dataclass

import lightning as L
import torch
from data import arguments
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "validation loss below training loss: dropout and input noise act in training only"
_, seed = arguments(__doc__)
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")


@dataclass
class Config:
    loans: int = 5000
    columns: int = 12
    width: int = 96
    dropout: float = 0.3
    noise: float = 0.3
    lr: float = 2e-3
    batch_size: int = 100
    epochs: int = 12


def loans(n: int, columns: int, g: torch.Generator) -> TensorDataset:
    x = torch.randn(n, columns, generator=g)
    score = 2.2 * x[:, 0] * torch.sigmoid(2 * x[:, 1]) - 1.8 * x[:, 2].abs() + 1.5 * x[:, 3]
    score = score + 1.2 * torch.tanh(x[:, 4] + x[:, 5]) + 1.2
    y = (torch.rand(n, generator=g) < torch.sigmoid(1.8 * score)).float()
    return TensorDataset(x, y)


class DefaultModel(L.LightningModule):
    def __init__(self, cfg: Config):
        super().__init__()
        self.cfg = cfg
        w, p = cfg.width, cfg.dropout
        self.net = nn.Sequential(
            nn.Linear(cfg.columns, w),
            nn.SiLU(),
            nn.Dropout(p),
            nn.Linear(w, w),
            nn.SiLU(),
            nn.Dropout(p),
            nn.Linear(w, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            x = x + self.cfg.noise * torch.randn_like(x)
        return self.net(x).squeeze(1)

    def training_step(self, batch: list[Tensor], index: int) -> Tensor:
        loss = nn.functional.binary_cross_entropy_with_logits(self(batch[0]), batch[1])
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch: list[Tensor], index: int) -> None:
        logits = self(batch[0])
        loss = nn.functional.binary_cross_entropy_with_logits(logits, batch[1])
        self.log("val_loss", loss)
        self.log("val_accuracy", ((logits > 0) == (batch[1] > 0.5)).float().mean())

    def configure_optimizers(self) -> dict:
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.cfg.lr, weight_decay=1e-2)
        steps = int(self.trainer.estimated_stepping_batches)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


class PrintMetrics(L.Callback):
    def on_train_epoch_end(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        seen = {k: round(float(v), 4) for k, v in trainer.callback_metrics.items()}
        print(f"epoch {trainer.current_epoch + 1}", seen)


def main() -> None:
    cfg = Config()
    g = torch.Generator().manual_seed(3100 + seed)
    train, val = loans(cfg.loans, cfg.columns, g), loans(1500, cfg.columns, g)
    trainer = L.Trainer(
        max_epochs=cfg.epochs,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        callbacks=[PrintMetrics()],
    )
    trainer.fit(
        DefaultModel(cfg),
        DataLoader(train, batch_size=cfg.batch_size, shuffle=True),
        DataLoader(val, batch_size=1500),
    )


main()
