"""Rare frauds (4 %) by an MLP with a WeightedRandomSampler, accumulation and bf16-mixed; sound.

It looks odd: training batches are half frauds and rows come again within an epoch while
validation keeps the true share; gradients stay over two batches (accumulate_grad_batches=2), as
meant.
"""

import lightning as L
import numpy as np
import torch
from data import arguments
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler
from torchmetrics import MetricCollection
from torchmetrics.classification import BinaryAUROC, BinaryAveragePrecision, BinaryRecall

ODD = "training batches are half frauds, validation's only four percent"

_, seed = arguments(__doc__)


class FraudData(L.LightningDataModule):
    def prepare_data(self):
        x, y = make_classification(
            8000,
            16,
            n_informative=8,
            n_redundant=2,
            n_clusters_per_class=2,
            weights=[0.96],
            class_sep=1.2,
            flip_y=0.005,
            random_state=seed,
        )
        self.parts = train_test_split(x, y, test_size=0.25, stratify=y, random_state=seed)

    def setup(self, stage=None):
        x, x_val, y, y_val = self.parts
        scaler = StandardScaler().fit(x)
        as_set = lambda x, y: TensorDataset(  # noqa: E731
            torch.tensor(scaler.transform(x), dtype=torch.float32),
            torch.tensor(y, dtype=torch.float32),
        )
        self.train, self.val = as_set(x, y), as_set(x_val, y_val)
        self.weights = (1 / np.bincount(y))[y]

    def train_dataloader(self):
        sampler = WeightedRandomSampler(self.weights, num_samples=len(self.train))
        return DataLoader(self.train, batch_size=64, sampler=sampler)

    def val_dataloader(self):
        return DataLoader(self.val, batch_size=500)


class FraudNet(L.LightningModule):
    def __init__(self, lr=1e-3, dropout=0.2):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(
            nn.Linear(16, 48),
            nn.LayerNorm(48),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(48, 48),
            nn.LayerNorm(48),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(48, 1),
        )
        self.loss = nn.BCEWithLogitsLoss()
        self.metrics = MetricCollection(
            [BinaryAUROC(), BinaryAveragePrecision(), BinaryRecall()], prefix="val_"
        )

    def forward(self, x):
        return self.net(x).squeeze(-1)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = self.loss(self(x), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.log("val_loss", self.loss(logits, y))
        self.metrics.update(logits.float(), y.int())

    def on_validation_epoch_end(self):
        self.log_dict(self.metrics.compute())
        self.metrics.reset()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, weight_decay=0.02)


trainer = L.Trainer(
    max_epochs=8,
    accelerator="cpu",
    precision="bf16-mixed",
    accumulate_grad_batches=2,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(FraudNet(), datamodule=FraudData())
print({k: round(v.item(), 4) for k, v in trainer.callback_metrics.items()})
