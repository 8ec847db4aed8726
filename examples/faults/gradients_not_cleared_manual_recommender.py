"""A matrix-factorisation recommender with manual optimisation that never clears its gradients.

With `automatic_optimization = False` the user must call `optimizer.zero_grad()` by oneself and
forgot it, so that each step goes along the sum of all gradients so far. The place is the loop.
"""

import lightning as L
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split
from torchmetrics.regression import MeanSquaredError

KIND = "gradients_not_cleared"
ACCEPT = ()
PLACE = ("loop", "optimizer")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

USERS, ITEMS = 150, 100


class Ratings(L.LightningDataModule):
    """Stars from 1 to 5 out of four hidden tastes, a bias for each user and item, and noise."""

    def setup(self, stage=None):
        n = 9000
        user, item = torch.randint(0, USERS, (n,)), torch.randint(0, ITEMS, (n,))
        tastes, traits = torch.randn(USERS, 4), torch.randn(ITEMS, 4)
        stars = 3.4 + 0.4 * (tastes[user] * traits[item]).sum(1)
        stars = stars + 0.4 * torch.randn(USERS)[user] + 0.4 * torch.randn(ITEMS)[item]
        stars = (stars + 0.3 * torch.randn(n)).clamp(1, 5)
        self.train, self.val = random_split(TensorDataset(user, item, stars), [7500, 1500])

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=128, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val, batch_size=500)


class MatrixFactorisation(L.LightningModule):
    def __init__(self, factors=4, lr=0.01):
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = False
        self.users, self.items = nn.Embedding(USERS, factors), nn.Embedding(ITEMS, factors)
        self.user_bias, self.item_bias = nn.Embedding(USERS, 1), nn.Embedding(ITEMS, 1)
        self.mean = nn.Parameter(torch.tensor(3.0))
        for table in (self.users, self.items):
            nn.init.normal_(table.weight, std=0.3)
        for table in (self.user_bias, self.item_bias):
            nn.init.zeros_(table.weight)
        self.loss = nn.MSELoss()
        self.val_rmse = MeanSquaredError(squared=False)

    def forward(self, user, item):
        product = (self.users(user) * self.items(item)).sum(1)
        return self.mean + product + self.user_bias(user)[:, 0] + self.item_bias(item)[:, 0]

    def training_step(self, batch, batch_idx):
        user, item, stars = batch
        optimizer = self.optimizers()
        if healthy:
            optimizer.zero_grad()
        loss = self.loss(self(user, item), stars)
        self.manual_backward(loss)
        optimizer.step()
        self.log("train_loss", loss, prog_bar=True)

    def validation_step(self, batch, batch_idx):
        user, item, stars = batch
        self.val_rmse(self(user, item), stars)
        self.log("val_rmse", self.val_rmse)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


trainer = L.Trainer(
    max_epochs=10,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(MatrixFactorisation(), datamodule=Ratings())
print({k: round(v.item(), 4) for k, v in trainer.callback_metrics.items()})
