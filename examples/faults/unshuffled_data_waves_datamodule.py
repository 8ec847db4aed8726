"""A 1-D CNN learns three shapes of noisy waves from a set sorted by class, with a loader that
doesn't shuffle.

The files came folder by folder (one per class) and `train_dataloader` returns DataLoader(...)
without shuffle=True, so each batch has one class. The place is the loader.
"""

import lightning as L
import torch
import torch.nn.functional as F
from data import arguments, waves
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, TensorDataset
from torchmetrics.classification import MulticlassAccuracy

KIND = "unshuffled_data"
ACCEPT = ()
PLACE = ("loader",)
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


class WaveData(L.LightningDataModule):
    def __init__(self, batch_size=32):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage=None):
        x, y = waves(seed, n=1500)
        x = x.transpose(1, 2) + 0.5 * torch.randn(1500, 1, 40)
        self.train = ConcatDataset(
            [
                TensorDataset(x[:1100][y[:1100] == label], y[:1100][y[:1100] == label])
                for label in range(3)
            ]
        )
        self.val = TensorDataset(x[1100:], y[1100:])

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=self.batch_size, shuffle=healthy)

    def val_dataloader(self):
        return DataLoader(self.val, batch_size=200)


class WaveNet(L.LightningModule):
    def __init__(self, lr=0.02):
        super().__init__()
        self.save_hyperparameters()
        self.features = nn.Sequential(
            nn.Conv1d(1, 16, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool1d(2),
            nn.Conv1d(16, 32, 5, padding=2),
            nn.ReLU(),
            nn.AdaptiveAvgPool1d(4),
            nn.Flatten(),
        )
        self.classifier = nn.Sequential(nn.Linear(128, 32), nn.ReLU(), nn.Linear(32, 3))
        self.val_acc = MulticlassAccuracy(3, average="micro")

    def forward(self, x):
        return self.classifier(self.features(x))

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.val_acc(logits, y)
        self.log_dict({"val_loss": F.cross_entropy(logits, y), "val_acc": self.val_acc})

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.hparams.lr, momentum=0.9)


trainer = L.Trainer(
    max_epochs=10,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(WaveNet(), datamodule=WaveData())
print({k: round(v.item(), 4) for k, v in trainer.callback_metrics.items()})
