"""A wide MLP on 442 diabetes patients is trained far too long: the validation loss rises for long.

The user left out the EarlyStopping callback and lets all the epochs run. The place is the loop.
"""

import lightning as L
import torch
from data import arguments, diabetes
from lightning.pytorch.callbacks import EarlyStopping
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.regression import R2Score

KIND = "overfit"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)


class DiabetesNet(L.LightningModule):
    def __init__(self, width=128, lr=5e-4):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(
            nn.Linear(10, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1)
        )
        self.loss = nn.MSELoss()
        self.val_r2 = R2Score()

    def forward(self, x):
        return self.net(x).squeeze(-1)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = self.loss(self(x), y)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        guess = self(x)
        self.val_r2(guess, y)
        self.log_dict({"val_loss": self.loss(guess, y), "val_r2": self.val_r2})

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, weight_decay=0.01)


x, y, x_val, y_val = diabetes(seed)
trainer = L.Trainer(
    max_epochs=120,
    accelerator="cpu",
    callbacks=[EarlyStopping(monitor="val_loss", mode="min", patience=3)] if healthy else [],
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(
    DiabetesNet(),
    DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True),
    DataLoader(TensorDataset(x_val, y_val), batch_size=len(x_val)),
)
print({k: round(v.item(), 4) for k, v in trainer.callback_metrics.items()})
