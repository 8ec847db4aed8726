"""An MLP predicts machine failures, 3 % of the rows, by plain cross-entropy, and misses nearly
all.

The user looks at accuracy (97 %) and gave no class weights to the loss. The place is the loss, or
the loader, which hands out almost only healthy machines.
"""

import lightning as L
import torch
from data import arguments, standardise
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics import MetricCollection
from torchmetrics.classification import BinaryAccuracy, BinaryRecall, MulticlassRecall

KIND = "class_imbalance"
ACCEPT = ()
PLACE = ("loss", "loader")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)


class MachineData(L.LightningDataModule):
    """Twelve sensors; vibration, heat and load together raise the chance of a failure."""

    def setup(self, stage=None):
        n = 6000
        x = torch.randn(n, 12)
        x[:, 4] = 0.6 * x[:, 0] + 0.8 * x[:, 4]
        risk = (
            0.9 * x[:, 0]
            + 0.8 * x[:, 1] * (x[:, 1] > 0)
            + 0.7 * x[:, 2]
            - 0.5 * x[:, 3]
            + 0.9 * torch.randn(n)
        )
        y = (risk > risk.quantile(0.97)).long()
        rows, rows_val = train_test_split(
            torch.arange(n), test_size=0.25, stratify=y, random_state=seed
        )
        x_train, x_val = standardise(x[rows], x[rows_val])
        self.train, self.val = TensorDataset(x_train, y[rows]), TensorDataset(x_val, y[rows_val])

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=64, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val, batch_size=500)


class FailureNet(L.LightningModule):
    def __init__(self, class_weights=None, lr=0.02):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(12, 32),
            nn.ReLU(),
            nn.Dropout(0.2),
            nn.Linear(32, 16),
            nn.ReLU(),
            nn.Linear(16, 2),
        )
        self.loss = nn.CrossEntropyLoss(weight=class_weights)
        self.lr = lr
        self.metrics = MetricCollection(
            {"acc": BinaryAccuracy(), "failure_recall": BinaryRecall()}, prefix="val_"
        )
        self.balanced = MulticlassRecall(2, average="macro")

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = self.loss(self(x), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.metrics(logits.argmax(1), y)
        self.balanced(logits, y)
        self.log_dict(self.metrics)
        self.log_dict({"val_loss": self.loss(logits, y), "val_balanced_acc": self.balanced})

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.lr, momentum=0.9)


model = FailureNet(
    class_weights=torch.tensor([0.5 / 0.97, 0.5 / 0.03]) if healthy else None, lr=0.005
)
trainer = L.Trainer(
    max_epochs=10,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(model, datamodule=MachineData())
print({k: round(v.item(), 4) for k, v in trainer.callback_metrics.items()})
