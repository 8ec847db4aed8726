"""Transfer of a CNN from digits 0-4 to digits 5-9 by Lightning's BackboneFinetuning callback;
sound.

It looks odd: the backbone is frozen at first and is not in the optimizer, then joins it as a
second parameter group with a tenth of the rate. The backbone was pretrained in this very program.
"""

import lightning as L
import torch
import torch.nn.functional as F
from data import arguments, images
from lightning.pytorch.callbacks import BackboneFinetuning
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics import MetricCollection
from torchmetrics.classification import MulticlassAccuracy, MulticlassF1Score

ODD = "a frozen backbone joins the optimizer late, with a smaller rate"

_, seed = arguments(__doc__)


class Classifier(L.LightningModule):
    def __init__(self, backbone=None, lr=2e-3):
        super().__init__()
        self.backbone = backbone or nn.Sequential(
            nn.Conv2d(1, 24, 3, padding=1),
            nn.BatchNorm2d(24),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(24, 48, 3, padding=1),
            nn.BatchNorm2d(48),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
        )
        self.head = nn.Sequential(nn.Linear(48 * 4, 32), nn.ReLU(), nn.Linear(32, 5))
        self.lr = lr
        metrics = MetricCollection({"acc": MulticlassAccuracy(5), "f1": MulticlassF1Score(5)})
        self.val_metrics = metrics.clone(prefix="val_")

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
        self.log("val_loss", F.cross_entropy(logits, y))
        self.val_metrics(logits, y)
        self.log_dict(self.val_metrics)

    def configure_optimizers(self):
        return torch.optim.Adam(filter(lambda p: p.requires_grad, self.parameters()), lr=self.lr)


def loaders(low):
    x, y, x_val, y_val = images(seed)
    mine, mine_val = (y // 5) == low, (y_val // 5) == low
    x, y, x_val, y_val = x[mine], y[mine] % 5, x_val[mine_val], y_val[mine_val] % 5
    return (
        DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True),
        DataLoader(TensorDataset(x_val, y_val), batch_size=128),
    )


def trainer(epochs, callbacks=()):
    return L.Trainer(
        max_epochs=epochs,
        callbacks=list(callbacks),
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )


source = Classifier()
first = trainer(6)
first.fit(source, *loaders(0))
print("source", {k: round(v.item(), 4) for k, v in first.callback_metrics.items()})

target = Classifier(backbone=source.backbone)
second = trainer(
    14,
    [
        BackboneFinetuning(
            unfreeze_backbone_at_epoch=6,
            lambda_func=lambda epoch: 1.1,
            backbone_initial_ratio_lr=0.1,
        )
    ],
)
second.fit(target, *loaders(1))
print("target", {k: round(v.item(), 4) for k, v in second.callback_metrics.items()})
