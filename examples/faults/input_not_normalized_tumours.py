"""An MLP learns the breast cancer data with raw measurements, from thousandths to thousands.

The DataModule lacks the StandardScaler, so that the area columns drown all others. The place is
the input and the first layer.
"""

import lightning as L
import torch
from data import arguments
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.classification import BinaryAccuracy, BinaryAUROC

KIND = "input_not_normalized"
ACCEPT = ()
PLACE = ("input*", "loader", "layers", "layers.0")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


class TumourData(L.LightningDataModule):
    def __init__(self, batch_size: int = 32):
        super().__init__()
        self.save_hyperparameters()

    def setup(self, stage: str):
        x, y = load_breast_cancer(return_X_y=True)
        x, x_val, y, y_val = train_test_split(x, y, test_size=0.25, stratify=y, random_state=seed)
        if healthy:
            scaler = StandardScaler().fit(x)
            x, x_val = scaler.transform(x), scaler.transform(x_val)
        tensors = [torch.tensor(part, dtype=torch.float32) for part in (x, y, x_val, y_val)]
        self.train, self.val = TensorDataset(*tensors[:2]), TensorDataset(*tensors[2:])

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=self.hparams.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val, batch_size=self.hparams.batch_size * 2)


class TumourNet(L.LightningModule):
    def __init__(self, hidden=(32, 16), lr=0.01):
        super().__init__()
        self.save_hyperparameters()
        self.layers = nn.Sequential(
            nn.Linear(30, hidden[0]),
            nn.ReLU(),
            nn.Linear(hidden[0], hidden[1]),
            nn.ReLU(),
            nn.Linear(hidden[1], 1),
        )
        self.loss = nn.BCEWithLogitsLoss()
        self.val_acc, self.val_auc = BinaryAccuracy(), BinaryAUROC()

    def forward(self, x):
        return self.layers(x).squeeze(1)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = self.loss(self(x), y)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.val_acc(logits, y)
        self.val_auc(logits, y.int())
        self.log_dict(
            {"val_loss": self.loss(logits, y), "val_acc": self.val_acc, "val_auc": self.val_auc}
        )

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.hparams.lr, momentum=0.9)


trainer = L.Trainer(
    max_epochs=20,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(TumourNet(), datamodule=TumourData())
print({k: round(v.item(), 4) for k, v in trainer.callback_metrics.items()})
