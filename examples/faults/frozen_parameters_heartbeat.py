"""A 1-D CNN classifies heart-beat-like signals with a backbone frozen at its random start.

A `freeze_backbone=True` stayed in the config from a fine-tuning project; here no checkpoint is
loaded, so only the head learns. The place is the parameters of `backbone`.
"""

import lightning as L
import torch
import torch.nn.functional as F
from data import arguments
from lightning.pytorch.callbacks import BaseFinetuning
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.classification import MulticlassF1Score

KIND = "frozen_parameters"
ACCEPT = ()
PLACE = ("backbone*", "optimizer")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


def beats(n, length=96):
    """Four rhythms: regular, early beat, missing beat, wide beat; each with drift and noise."""
    y = torch.randint(0, 4, (n,))
    t = torch.arange(length).float()
    period = 18 + 4 * torch.rand(n, 1)
    start = 4 + 8 * torch.rand(n, 1)
    x = 0.3 * torch.sin(t / 25 + 6 * torch.rand(n, 1)) + 0.2 * torch.randn(n, length)
    which = torch.randint(1, 4, (n,))
    for k in range(5):
        odd = which == k
        at = start + k * period - ((y == 1) & odd).float()[:, None] * 0.4 * period
        width = 1.0 + 1.3 * ((y == 3) & odd).float()[:, None]
        height = (1 - ((y == 2) & odd).float())[:, None] * (0.9 + 0.3 * torch.rand(n, 1))
        x = x + height * (
            torch.exp(-(((t - at) / width) ** 2)) - 0.35 * torch.exp(-(((t - at - 3) / 2) ** 2))
        )
    return x.unsqueeze(1), y


class HeartNet(L.LightningModule):
    def __init__(self, freeze_backbone: bool = False, lr: float = 3e-3):
        super().__init__()
        self.save_hyperparameters()
        self.backbone = nn.Sequential(
            nn.Conv1d(1, 16, 7, padding=3),
            nn.BatchNorm1d(16),
            nn.ReLU(),
            nn.MaxPool1d(2),
            nn.Conv1d(16, 24, 7, padding=3),
            nn.BatchNorm1d(24),
            nn.ReLU(),
            nn.MaxPool1d(2),
            nn.Conv1d(24, 32, 7, padding=3),
            nn.BatchNorm1d(32),
            nn.ReLU(),
            nn.AdaptiveMaxPool1d(1),
            nn.Flatten(),
        )
        self.head = nn.Linear(32, 4)
        if freeze_backbone:
            BaseFinetuning.freeze(self.backbone)
        self.f1 = MulticlassF1Score(4)

    def forward(self, x):
        return self.head(self.backbone(x))

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.f1(logits, y)
        self.log_dict({"val_loss": F.cross_entropy(logits, y), "val_f1": self.f1})

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(
            filter(lambda p: p.requires_grad, self.parameters()), lr=self.hparams.lr
        )
        return [optimizer], [
            torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, self.trainer.max_epochs)
        ]


config = {"freeze_backbone": not healthy, "lr": 3e-3}
trainer = L.Trainer(
    max_epochs=8,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(
    HeartNet(**config),
    DataLoader(TensorDataset(*beats(1600)), batch_size=32, shuffle=True),
    DataLoader(TensorDataset(*beats(500)), batch_size=250),
)
print({k: round(v.item(), 4) for k, v in trainer.callback_metrics.items()})
