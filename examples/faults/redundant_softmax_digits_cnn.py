"""A CNN for digits whose forward ends in softmax, with F.cross_entropy on top of it.

The user wanted probabilities for the metrics and put `nn.Softmax` into the network; cross_entropy
has its own. The place is the loss (and the last layer of `model`).
"""

import lightning as L
import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.classification import MulticlassAccuracy

KIND = "redundant_softmax"
ACCEPT = ()
PLACE = ("loss", "model*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


class DigitsModule(L.LightningModule):
    def __init__(self, lr=0.02):
        super().__init__()
        self.save_hyperparameters()
        self.model = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(12, 24, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(24 * 16, 48),
            nn.ReLU(),
            nn.Linear(48, 10),
            nn.Identity() if healthy else nn.Softmax(dim=1),
        )
        self.train_acc = MulticlassAccuracy(num_classes=10)
        self.val_acc = MulticlassAccuracy(num_classes=10)

    def forward(self, x):
        return self.model(x)

    def _shared_step(self, batch, accuracy, stage):
        x, y = batch
        out = self(x)
        loss = F.cross_entropy(out, y)
        accuracy(out, y)
        self.log(f"{stage}_loss", loss)
        self.log(f"{stage}_acc", accuracy, on_step=False, on_epoch=True)
        return loss

    def training_step(self, batch, batch_idx):
        return self._shared_step(batch, self.train_acc, "train")

    def validation_step(self, batch, batch_idx):
        self._shared_step(batch, self.val_acc, "val")

    def configure_optimizers(self):
        return torch.optim.SGD(
            self.parameters(), lr=self.hparams.lr, momentum=0.9, weight_decay=1e-4
        )


x, y, x_val, y_val = images(seed)
trainer = L.Trainer(
    max_epochs=8,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(
    DigitsModule(),
    train_dataloaders=DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True),
    val_dataloaders=DataLoader(TensorDataset(x_val, y_val), batch_size=150),
)
print({k: round(v.item(), 4) for k, v in trainer.callback_metrics.items()})
