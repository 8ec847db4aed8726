"""A residual CNN for digits with a LightningDataModule and OneCycleLR per step; sound.

It looks odd: the rate climbs to 0.1 and falls by 10^4 in the end, the training images are shifted
at random. It is the schedule of Lightning's CIFAR tutorial, spread over all the steps of the
training.
"""

import lightning as L
import torch
import torch.nn.functional as F
from data import arguments, images
from lightning.pytorch.callbacks import LearningRateMonitor  # noqa: F401  (no logger here)
from torch import nn
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.data import DataLoader, Dataset
from torchmetrics.classification import MulticlassAccuracy

ODD = "the rate climbs high, then falls by four powers of ten"

_, seed = arguments(__doc__)


class Shifted(Dataset):
    def __init__(self, x, y, train):
        self.x, self.y, self.train = x, y, train

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        x = self.x[i]
        if self.train:
            low = x.min()
            dy, dx = torch.randint(0, 3, (2,)).tolist()
            x = F.pad(x, (1, 1, 1, 1), value=low.item())[:, dy : dy + 8, dx : dx + 8]
        return x, self.y[i]


class DigitsDataModule(L.LightningDataModule):
    def __init__(self, batch_size=64):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage):
        x, y, x_val, y_val = images(seed)
        self.train, self.val = Shifted(x, y, True), Shifted(x_val, y_val, False)

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=self.batch_size, shuffle=True, drop_last=True)

    def val_dataloader(self):
        return DataLoader(self.val, batch_size=256)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
        )

    def forward(self, x):
        return F.relu(x + self.body(x))


class LitResnet(L.LightningModule):
    def __init__(self, lr=0.1):
        super().__init__()
        self.save_hyperparameters()
        self.model = nn.Sequential(
            nn.Conv2d(1, 24, 3, padding=1, bias=False),
            nn.BatchNorm2d(24),
            nn.ReLU(),
            Block(24),
            nn.MaxPool2d(2),
            Block(24),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(24, 10),
        )
        self.accuracy = MulticlassAccuracy(10, average="micro")

    def forward(self, x):
        return F.log_softmax(self.model(x), dim=1)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.nll_loss(self(x), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.accuracy(logits, y)
        self.log_dict({"val_loss": F.nll_loss(logits, y), "val_acc": self.accuracy})

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(
            self.parameters(), lr=self.hparams.lr, momentum=0.9, weight_decay=5e-4
        )
        scheduler = OneCycleLR(optimizer, 0.1, total_steps=self.trainer.estimated_stepping_batches)
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": scheduler, "interval": "step"},
        }


trainer = L.Trainer(
    max_epochs=15,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(LitResnet(), datamodule=DigitsDataModule())
print({k: round(v.item(), 4) for k, v in trainer.callback_metrics.items()})
