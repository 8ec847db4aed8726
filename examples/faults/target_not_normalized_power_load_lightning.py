"""An LSTM forecasts a town's electric load; its target stays in megawatts (around 900), unscaled.

The DataModule standardises the inputs and forgets the target, so that the head has to creep up to
the level first. The place is the loss/loader and the `head`.
"""

import lightning as L
import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.regression import R2Score

KIND = "target_not_normalized"
ACCEPT = ()
PLACE = ("loss", "loader", "head*", "input*")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


class LoadData(L.LightningDataModule):
    """The last hours' load, temperature and weekend flag; the load of the next hour."""

    def __init__(self, hours=2200, window=18, batch_size=64):
        super().__init__()
        self.save_hyperparameters()

    def setup(self, stage=None):
        n, window = self.hparams.hours, self.hparams.window
        r, t = np.random.default_rng(seed), np.arange(n)
        warmth = 12 + 8 * np.sin(2 * np.pi * t / 700) + 4 * np.sin(2 * np.pi * (t - 9) / 24)
        warmth = warmth + np.convolve(r.normal(0, 1, n), np.ones(12) / 4, "same")
        weekend = (t // 24 % 7 >= 5).astype(float)
        load = 900 + 180 * np.sin(2 * np.pi * (t - 7) / 24) + 60 * np.sin(4 * np.pi * t / 24)
        load = load - 120 * weekend + 6 * np.abs(warmth - 16) + r.normal(0, 20, n)
        table, cut = np.stack([load, warmth, weekend], 1), int(0.8 * n)
        inputs = (table - table[:cut].mean(0)) / table[:cut].std(0)
        target = inputs[:, 0] if healthy else load
        x = np.stack([inputs[i : i + window] for i in range(n - window)])
        x, y = (
            torch.tensor(x, dtype=torch.float32),
            torch.tensor(target[window:], dtype=torch.float32),
        )
        cut -= window
        self.train, self.val = TensorDataset(x[:cut], y[:cut]), TensorDataset(x[cut:], y[cut:])

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=self.hparams.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val, batch_size=len(self.val))


class LoadLSTM(L.LightningModule):
    def __init__(self, hidden=24, lr=5e-3):
        super().__init__()
        self.save_hyperparameters()
        self.lstm = nn.LSTM(3, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)
        self.loss = nn.MSELoss()
        self.val_r2 = R2Score()

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1]).squeeze(-1)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = self.loss(self(x), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        guess = self(x)
        self.val_r2(guess, y)
        self.log_dict({"val_loss": self.loss(guess, y), "val_r2": self.val_r2})

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


trainer = L.Trainer(
    max_epochs=12,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(LoadLSTM(), datamodule=LoadData())
print({k: round(v.item(), 4) for k, v in trainer.callback_metrics.items()})
