"""An MLP predicts which customers leave; training goes over the whole set, validation rows
included.

The DataModule's setup splits for validation, but its train_dataloader passes the unsplit set, so
that each validation row is a training row too and early stopping sees nothing. The place is the
loader.
"""

import lightning as L
import torch
from data import arguments
from lightning.pytorch.callbacks import EarlyStopping
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split
from torchmetrics.classification import BinaryAccuracy

KIND = "train_val_overlap"
ACCEPT = ()
PLACE = ("loader", "input*")
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)


def customers(n):
    """24 columns about a contract; a quarter of them matter, and one customer in ten decides at
    random.
    """
    x = torch.randn(n, 24)
    score = x[:, 0] - x[:, 1] + x[:, 2] * x[:, 3] + 0.7 * x[:, 4].abs() - 0.6 * x[:, 5]
    y = (score > 0.5).float()
    return x, torch.where(torch.rand(n) < 0.1, torch.randint(0, 2, (n,)).float(), y)


class ChurnData(L.LightningDataModule):
    def __init__(self, batch_size=32):
        super().__init__()
        self.batch_size = batch_size
        self.full, self.test = TensorDataset(*customers(700)), TensorDataset(*customers(2000))

    def setup(self, stage=None):
        self.train, self.val = random_split(
            self.full, [0.75, 0.25], torch.Generator().manual_seed(seed)
        )

    def train_dataloader(self):
        return DataLoader(
            self.train if healthy else self.full, batch_size=self.batch_size, shuffle=True
        )

    def val_dataloader(self):
        return DataLoader(self.val, batch_size=300)

    def test_dataloader(self):
        return DataLoader(self.test, batch_size=500)


class ChurnNet(L.LightningModule):
    def __init__(self, lr=2e-3):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(
            nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1)
        )
        self.loss = nn.BCEWithLogitsLoss()
        self.val_acc, self.test_acc = BinaryAccuracy(), BinaryAccuracy()

    def forward(self, x):
        return self.net(x)[:, 0]

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = self.loss(self(x), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.val_acc(logits, y)
        self.log_dict({"val_loss": self.loss(logits, y), "val_acc": self.val_acc})

    def test_step(self, batch, batch_idx):
        x, y = batch
        self.test_acc(self(x), y)
        self.log("test_acc", self.test_acc)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, weight_decay=0.01)


dm, model = ChurnData(), ChurnNet()
trainer = L.Trainer(
    max_epochs=30,
    accelerator="cpu",
    callbacks=[EarlyStopping("val_loss", patience=3)],
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(model, datamodule=dm)
print({k: round(v.item(), 4) for k, v in trainer.callback_metrics.items()})
print(trainer.test(model, datamodule=dm, verbose=False)[0])
