"""A factorisation model of ride ratings has two optimizers in Lightning; with manual optimization
nobody steps their schedules, and the rates stay at the start of the warm-up.

The tables take Adagrad and the dense part AdamW, so automatic optimization was turned off. The
one-cycle schedules are still returned with interval "step", but Lightning leaves them to the user
then, and says nothing. Both rates remain at a 25th of what was meant. The place is the loop.
"""

import logging
import warnings
from dataclasses import dataclass

import lightning as L
import torch
from data import arguments
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "schedule_never_steps"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("learning_rate", "optimizer", "loop")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")


@dataclass
class Config:
    riders: int = 150
    drivers: int = 100
    ratings: int = 6000
    factors: int = 8
    table_lr: float = 0.12
    dense_lr: float = 4e-3
    batch_size: int = 100
    epochs: int = 9


def simulate(cfg: Config) -> tuple[TensorDataset, TensorDataset]:
    g = torch.Generator().manual_seed(1400 + seed)
    rider = torch.randint(0, cfg.riders, (cfg.ratings,), generator=g)
    driver = torch.randint(0, cfg.drivers, (cfg.ratings,), generator=g)
    context = torch.randn(cfg.ratings, 4, generator=g)
    likes = torch.randn(cfg.riders, 3, generator=g) / 3**0.5
    traits = torch.randn(cfg.drivers, 3, generator=g)
    level = 0.8 * torch.randn(cfg.drivers, generator=g)
    stars = (likes[rider] * traits[driver]).sum(1) + level[driver]
    stars = stars + 0.6 * torch.tanh(context[:, 0] * context[:, 1]) - 0.4 * context[:, 2].abs()
    stars = stars + 0.3 * torch.randn(cfg.ratings, generator=g)
    cut = int(0.85 * cfg.ratings)
    stars = (stars - stars[:cut].mean()) / stars[:cut].std()
    columns = (rider, driver, context, stars)
    return TensorDataset(*(c[:cut] for c in columns)), TensorDataset(*(c[cut:] for c in columns))


class RatingModel(L.LightningModule):
    def __init__(self, cfg: Config, steps: int):
        super().__init__()
        self.cfg, self.steps = cfg, steps
        self.automatic_optimization = False
        self.tables = nn.ModuleDict(
            {
                "rider": nn.Embedding(cfg.riders, cfg.factors),
                "driver": nn.Embedding(cfg.drivers, cfg.factors),
                "rider_bias": nn.Embedding(cfg.riders, 1),
                "driver_bias": nn.Embedding(cfg.drivers, 1),
            }
        )
        for table in self.tables.values():
            nn.init.normal_(table.weight, std=0.1)
        self.dense = nn.Sequential(
            nn.Linear(4 + cfg.factors, 32),
            nn.SiLU(),
            nn.Linear(32, 32),
            nn.SiLU(),
            nn.Linear(32, 1),
        )

    def forward(self, rider: Tensor, driver: Tensor, context: Tensor) -> Tensor:
        product = self.tables["rider"](rider) * self.tables["driver"](driver)
        bias = self.tables["rider_bias"](rider) + self.tables["driver_bias"](driver)
        dense = self.dense(torch.cat([context, product], 1))
        return (product.sum(1, keepdim=True) + bias + dense).squeeze(1)

    def training_step(self, batch: list[Tensor], index: int) -> None:
        rider, driver, context, stars = batch
        loss = nn.functional.mse_loss(self(rider, driver, context), stars)
        for optimizer in self.optimizers():
            optimizer.zero_grad()
        self.manual_backward(loss)
        for optimizer in self.optimizers():
            optimizer.step()
        if healthy:
            for scheduler in self.lr_schedulers():
                scheduler.step()
        self.log("train_mse", loss, on_step=False, on_epoch=True)

    def validation_step(self, batch: list[Tensor], index: int) -> None:
        rider, driver, context, stars = batch
        self.log("val_mse", nn.functional.mse_loss(self(rider, driver, context), stars))

    def configure_optimizers(self):
        tables = torch.optim.Adagrad(self.tables.parameters(), lr=self.cfg.table_lr)
        dense = torch.optim.AdamW(self.dense.parameters(), lr=self.cfg.dense_lr, weight_decay=1e-2)
        schedules = [
            torch.optim.lr_scheduler.OneCycleLR(opt, lr, self.steps, cycle_momentum=False)
            for opt, lr in ((tables, self.cfg.table_lr), (dense, self.cfg.dense_lr))
        ]
        return [tables, dense], [{"scheduler": s, "interval": "step"} for s in schedules]


class PrintMetrics(L.Callback):
    def on_train_epoch_end(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        seen = {name: float(value) for name, value in trainer.callback_metrics.items()}
        rates = [opt.param_groups[0]["lr"] for opt in trainer.optimizers]
        print(f"epoch {trainer.current_epoch + 1}", seen, "rates", [f"{r:.2g}" for r in rates])


def main() -> None:
    cfg = Config()
    train, val = simulate(cfg)
    loader = DataLoader(train, batch_size=cfg.batch_size, shuffle=True)
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
    trainer.fit(RatingModel(cfg, cfg.epochs * len(loader)), loader, DataLoader(val, batch_size=900))


main()
