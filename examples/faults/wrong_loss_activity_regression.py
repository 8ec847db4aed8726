"""An LSTM tells six activities from accelerometer curves, trained by MSE on the class number.

The user wrote a single output and `nn.MSELoss` against the label's number and rounds it; the
labels are names without an order. The place is the loss (and `head`).
"""

import lightning as L
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.classification import MulticlassAccuracy

KIND = "wrong_loss"
ACCEPT = ()
PLACE = ("loss", "head*")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


def activities(n, length=30):
    """Six movements (walking, running, sitting, ...), each with its frequency, force and tilt on
    two axes.
    """
    y = torch.randint(0, 6, (n,))
    frequency = torch.tensor([0.9, 0.35, 0.6, 0.9, 0.35, 0.6])[y] * (1 + 0.1 * torch.randn(n))
    force = torch.tensor([0.5, 1.2, 1.2, 1.2, 0.5, 0.5])[y] * (1 + 0.15 * torch.randn(n))
    tilt = torch.tensor([0.5, -0.5, 0.5, -0.5, 0.5, -0.5])[y] + 0.3 * torch.randn(n)
    t = torch.arange(length).float() * frequency[:, None] + 6.28 * torch.rand(n, 1)
    x = torch.stack([force[:, None] * t.sin(), tilt[:, None] + 0.5 * force[:, None] * t.cos()], -1)
    return x + 0.3 * torch.randn(n, length, 2), y


class ActivityLSTM(L.LightningModule):
    def __init__(self, hidden=32, classes=6, lr=1e-2):
        super().__init__()
        self.save_hyperparameters()
        self.lstm = nn.LSTM(2, hidden, batch_first=True)
        self.head = nn.Linear(hidden, classes if healthy else 1)
        self.loss = nn.CrossEntropyLoss() if healthy else nn.MSELoss()
        self.val_acc = MulticlassAccuracy(classes, average="micro")

    def forward(self, x):
        return self.head(self.lstm(x)[0].mean(1)).squeeze(-1)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = self.loss(self(x), y if healthy else y.float())
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        out = self(x)
        self.val_acc(out.argmax(-1) if out.dim() > 1 else out.round().clamp(0, 5).long(), y)
        self.log("val_acc", self.val_acc)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


trainer = L.Trainer(
    max_epochs=12,
    accelerator="cpu",
    gradient_clip_val=1.0,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(
    ActivityLSTM(),
    DataLoader(TensorDataset(*activities(1200)), batch_size=48, shuffle=True),
    DataLoader(TensorDataset(*activities(400)), batch_size=400),
)
print({k: round(v.item(), 4) for k, v in trainer.callback_metrics.items()})
