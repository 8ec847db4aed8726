"""Hourly loads of bakeries are forecast in Lightning with precision "bf16-true"; the weights
themselves have 8 bits, and small updates are rounded away.

For speed they asked for bfloat16 and took the wrong one of two settings: "bf16-mixed" keeps the
weights in float32, "bf16-true" converts the module. With a rate of 1.5e-4 most updates of AdamW are
under half a step of the format. The place is the model: its weights.
"""

import logging
import warnings
from dataclasses import dataclass

import lightning as L
import torch
from data import arguments
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "low_precision_updates_lost"
ACCEPT = ()
PLACE = ("model", "optimizer", "*")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")


@dataclass
class Config:
    shops: int = 40
    context: int = 36
    horizon: int = 8
    days: int = 30
    lr: float = 1.5e-4
    batch_size: int = 64
    epochs: int = 11
    precision: str = "bf16-mixed" if healthy else "bf16-true"


def bakery_loads(cfg: Config) -> Tensor:
    g = torch.Generator().manual_seed(1500 + seed)
    t = torch.arange(24 * cfg.days).float()
    opening = 3 + 4 * torch.rand(cfg.shops, 1, generator=g)
    length = 5 + 5 * torch.rand(cfg.shops, 1, generator=g)
    hour = t % 24
    baking = torch.sigmoid(2 * (hour - opening)) * torch.sigmoid(2 * (opening + length - hour))
    second = 0.6 * torch.exp(-((hour - 15 - opening / 4) ** 2) / 3)
    strength = torch.exp(0.4 * torch.randn(cfg.shops, cfg.days, generator=g).cumsum(1) / 4)
    load = (baking + second) * strength.repeat_interleave(24, 1)
    load = load + 0.06 * torch.randn(cfg.shops, 24 * cfg.days, generator=g)
    return (load - load.mean()) / load.std()


def windows(load: Tensor, cfg: Config, stride: int) -> TensorDataset:
    cut = load.unfold(1, cfg.context + cfg.horizon, stride)
    shop = torch.arange(cfg.shops).unsqueeze(1).expand(cut.shape[:2])
    cut = cut.flatten(0, 1)
    return TensorDataset(shop.flatten(), cut[:, : cfg.context], cut[:, cfg.context :])


class LoadForecaster(L.LightningModule):
    def __init__(self, cfg: Config):
        super().__init__()
        self.cfg = cfg
        self.shop = nn.Embedding(cfg.shops, 8)
        self.net = nn.Sequential(
            nn.Linear(cfg.context + 8, 128),
            nn.GELU(),
            nn.LayerNorm(128),
            nn.Linear(128, 128),
            nn.GELU(),
            nn.LayerNorm(128),
            nn.Linear(128, cfg.horizon),
        )

    def forward(self, shop: Tensor, context: Tensor) -> Tensor:
        return self.net(torch.cat([context, self.shop(shop)], 1))

    def training_step(self, batch: list[Tensor], index: int) -> Tensor:
        shop, context, horizon = batch
        loss = nn.functional.mse_loss(self(shop, context), horizon)
        self.log("train_mse", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch: list[Tensor], index: int) -> None:
        shop, context, horizon = batch
        error = self(shop, context).float() - horizon.float()
        self.log("val_mse", error.square().mean())

    def configure_optimizers(self) -> dict:
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.cfg.lr, weight_decay=1e-2)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, self.cfg.epochs)
        return {"optimizer": optimizer, "lr_scheduler": schedule}


class PrintMetrics(L.Callback):
    def on_train_epoch_end(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        seen = {k: round(float(v), 4) for k, v in trainer.callback_metrics.items()}
        print(f"epoch {trainer.current_epoch + 1}", seen)


def main() -> None:
    cfg = Config()
    load = bakery_loads(cfg)
    cut = int(0.8 * load.shape[1])
    train = DataLoader(windows(load[:, :cut], cfg, 5), batch_size=cfg.batch_size, shuffle=True)
    val = DataLoader(windows(load[:, cut:], cfg, 7), batch_size=512)
    trainer = L.Trainer(
        max_epochs=cfg.epochs,
        accelerator="cpu",
        precision=cfg.precision,
        gradient_clip_val=1.0,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        callbacks=[PrintMetrics()],
    )
    trainer.fit(LoadForecaster(cfg), train, val)


main()
