"""A GRU forecasts the next hour of a river's level; ReduceLROnPlateau and EarlyStopping; sound.

It looks odd: the split is by time, not at random, the rate is halved in the middle and the
training ends by itself before max_epochs. Scaling is by the training years only.
"""

import lightning as L
import numpy as np
import torch
from data import arguments
from lightning.pytorch.callbacks import EarlyStopping
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchmetrics.regression import MeanAbsoluteError, R2Score

ODD = "a split by time, a halved rate, an early end of training"

_, seed = arguments(__doc__)


def river(n=2400):
    r = np.random.default_rng(seed)
    t = np.arange(n)
    rain = r.gamma(0.15, 2.0, n)
    level, stored = np.zeros(n), 0.0
    for i in range(n):
        stored = 0.93 * stored + rain[i]
        level[i] = stored + 1.5 * np.sin(2 * np.pi * t[i] / 24) + 0.15 * r.normal()
    return np.stack([level, rain], 1).astype("float32")


class WindowDataset(Dataset):
    def __init__(self, series, window=16):
        self.series, self.window = torch.from_numpy(series), window

    def __len__(self):
        return len(self.series) - self.window

    def __getitem__(self, i):
        return self.series[i : i + self.window], self.series[i + self.window, :1]


class RiverData(L.LightningDataModule):
    def setup(self, stage=None):
        series = river()
        cut = int(0.8 * len(series))
        mean, std = series[:cut].mean(0), series[:cut].std(0)
        series = (series - mean) / std
        self.train, self.val = WindowDataset(series[:cut]), WindowDataset(series[cut:])

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=64, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val, batch_size=256)


class Forecaster(L.LightningModule):
    def __init__(self, hidden=24, lr=5e-3):
        super().__init__()
        self.save_hyperparameters()
        self.gru = nn.GRU(2, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)
        self.loss = nn.HuberLoss()
        self.mae, self.r2 = MeanAbsoluteError(), R2Score()

    def forward(self, x):
        _, h = self.gru(x)
        return self.head(h[-1])

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = self.loss(self(x), y)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        guess = self(x)
        self.mae(guess, y)
        self.r2(guess, y)
        self.log_dict({"val_loss": self.loss(guess, y), "val_mae": self.mae, "val_r2": self.r2})

    def configure_optimizers(self):
        optimizer = torch.optim.RMSprop(self.parameters(), lr=self.hparams.lr)
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": scheduler, "monitor": "val_loss"},
        }


trainer = L.Trainer(
    max_epochs=30,
    accelerator="cpu",
    callbacks=[EarlyStopping("val_loss", patience=4)],
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(Forecaster(), datamodule=RiverData())
print(trainer.current_epoch, {k: round(v.item(), 4) for k, v in trainer.callback_metrics.items()})
