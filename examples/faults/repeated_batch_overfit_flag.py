"""A tiny vision transformer on digits trains with a forgotten `overfit_batches=1`.

The trainer's debugging option stayed in, so that each step gets the very same batch. The place is
the loader (or the loop).
"""

import lightning as L
import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.classification import MulticlassAccuracy

KIND = "repeated_batch"
ACCEPT = ("overfit",)
PLACE = ("loader", "loop")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


class DigitsData(L.LightningDataModule):
    def setup(self, stage=None):
        x, y, x_val, y_val = images(seed)
        self.train, self.val = TensorDataset(x, y), TensorDataset(x_val, y_val)

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=64, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val, batch_size=len(self.val))


class TinyViT(L.LightningModule):
    def __init__(self, width=32, lr=3e-3):
        super().__init__()
        self.save_hyperparameters()
        self.patches = nn.Conv2d(1, width, 2, stride=2)
        self.positions = nn.Parameter(0.02 * torch.randn(1, 16, width))
        layer = nn.TransformerEncoderLayer(width, 4, 64, 0.1, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 10))
        self.val_acc = MulticlassAccuracy(10, average="micro")

    def forward(self, x):
        h = self.patches(x).flatten(2).transpose(1, 2) + self.positions
        return self.head(self.encoder(h).mean(1))

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.val_acc(logits, y)
        self.log_dict({"val_loss": F.cross_entropy(logits, y), "val_acc": self.val_acc})

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(
            optimizer, T_max=self.trainer.max_steps
        )
        return [optimizer], [{"scheduler": scheduler, "interval": "step"}]


trainer = L.Trainer(
    max_steps=300,
    max_epochs=-1,
    val_check_interval=20,
    check_val_every_n_epoch=None,
    overfit_batches=0.0 if healthy else 1,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(TinyViT(), datamodule=DigitsData())
print({k: round(v.item(), 4) for k, v in trainer.callback_metrics.items()})
