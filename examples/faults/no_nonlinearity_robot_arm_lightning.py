"""A five-layer MLP learns where a robot arm's hand is from its joint angles, without any
activation.

The list of layers is built in a loop in which the activation was forgotten, so that the network
is one linear map. The place is the model (`layers`).
"""

from itertools import pairwise

import lightning as L
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchmetrics import MetricCollection
from torchmetrics.regression import MeanAbsoluteError, R2Score

KIND = "no_nonlinearity"
ACCEPT = ("low_capacity",)
PLACE = ("layers*",)
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


class ArmDataset(Dataset):
    """Three joint angles, and the measured x and y of the hand."""

    def __init__(self, n, lengths=(1.0, 0.8, 0.5)):
        self.angles = (torch.rand(n, 3) * 2 - 1) * 2.2
        absolute = self.angles.cumsum(1)
        reach = torch.tensor(lengths)
        hand = torch.stack([(reach * absolute.cos()).sum(1), (reach * absolute.sin()).sum(1)], 1)
        self.hand = hand + 0.03 * torch.randn(n, 2)

    def __len__(self):
        return len(self.angles)

    def __getitem__(self, i):
        return {"angles": self.angles[i], "hand": self.hand[i]}


class ArmModel(L.LightningModule):
    def __init__(self, sizes=(3, 64, 64, 64, 2), lr=3e-3):
        super().__init__()
        self.save_hyperparameters()
        layers = []
        for inputs, outputs in pairwise(sizes[:-1]):
            layers += (
                [nn.Linear(inputs, outputs), nn.SiLU()] if healthy else [nn.Linear(inputs, outputs)]
            )
        self.layers = nn.Sequential(*layers, nn.Linear(sizes[-2], sizes[-1]))
        self.loss = nn.MSELoss()
        self.metrics = MetricCollection(
            {"mae": MeanAbsoluteError(), "r2": R2Score()}, prefix="val_"
        )

    def forward(self, angles):
        return self.layers(angles)

    def training_step(self, batch, batch_idx):
        loss = self.loss(self(batch["angles"]), batch["hand"])
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        guess = self(batch["angles"])
        self.metrics(guess, batch["hand"])
        self.log("val_loss", self.loss(guess, batch["hand"]))
        self.log_dict(self.metrics)

    def configure_optimizers(self):
        optimizer = torch.optim.NAdam(self.parameters(), lr=self.hparams.lr)
        scheduler = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=12, power=0.9)
        return {"optimizer": optimizer, "lr_scheduler": scheduler}


trainer = L.Trainer(
    max_epochs=10,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(
    ArmModel(),
    DataLoader(ArmDataset(2500), batch_size=64, shuffle=True),
    DataLoader(ArmDataset(500), batch_size=250),
)
print({k: round(v.item(), 4) for k, v in trainer.callback_metrics.items()})
