"""A small residual CNN on digits, with batch norms whose momentum is 0.99 as in Keras.

In PyTorch momentum is the weight of the NEW value: with 0.99 the running statistics are those of
the last small batch alone, and validation suffers. The place is the BatchNorm layers.
"""

from functools import partial

import lightning as L
import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.classification import MulticlassAccuracy

KIND = "batchnorm_momentum"
ACCEPT = ()
PLACE = ("stem*", "blocks*", "*norm*")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

Norm = partial(nn.BatchNorm2d, momentum=0.1 if healthy else 0.99)


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(width, width, 3, padding=1, bias=False), Norm(width)
        self.conv2, self.norm2 = nn.Conv2d(width, width, 3, padding=1, bias=False), Norm(width)

    def forward(self, x):
        h = F.relu(self.norm1(self.conv1(x)))
        return F.relu(x + self.norm2(self.conv2(h)))


class LitNet(L.LightningModule):
    def __init__(self, width=16, depth=2, lr=0.02):
        super().__init__()
        self.save_hyperparameters()
        self.stem = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1, bias=False), Norm(width), nn.ReLU(), nn.MaxPool2d(2)
        )
        self.blocks = nn.Sequential(*(Residual(width) for _ in range(depth)))
        self.fc = nn.Linear(width, 10)
        self.val_acc = MulticlassAccuracy(10, average="micro")

    def forward(self, x):
        return self.fc(self.blocks(self.stem(x)).mean((2, 3)))

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
        optimizer = torch.optim.SGD(
            self.parameters(), lr=self.hparams.lr, momentum=0.9, weight_decay=1e-4
        )
        return [optimizer], [
            torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=self.trainer.max_epochs)
        ]


x, y, x_val, y_val = images(seed)
trainer = L.Trainer(
    max_epochs=4,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(
    LitNet(),
    DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True, drop_last=True),
    DataLoader(TensorDataset(x_val, y_val), batch_size=150),
)
print({k: round(v.item(), 4) for k, v in trainer.callback_metrics.items()})
