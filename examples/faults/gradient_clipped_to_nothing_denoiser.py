"""A denoising autoencoder of sensor curves by SGD, with Trainer(gradient_clip_val=1e-3).

The user gave the trainer a clipping norm of a thousandth, far below any gradient of this network,
so each SGD step is next to nothing. The place is the loop/optimizer.
"""

import lightning as L
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics import MeanMetric

KIND = "gradient_clipped_to_nothing"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("loop", "optimizer")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


def curves(n, length=48):
    """Decaying oscillations on an offset, standardised, and the same with noise."""
    t = torch.linspace(0, 1, length)
    amplitude, decay = 0.5 + torch.rand(n, 1), 1 + 3 * torch.rand(n, 1)
    frequency, offset = 8 + 12 * torch.rand(n, 1), 0.4 * torch.randn(n, 1)
    clean = offset + amplitude * torch.exp(-decay * t) * torch.cos(frequency * t)
    clean = clean / 0.6
    return clean + 0.5 * torch.randn(n, length), clean


class Denoiser(L.LightningModule):
    def __init__(self, length=48, latent=10, lr=0.2):
        super().__init__()
        self.save_hyperparameters()
        self.encoder = nn.Sequential(nn.Linear(length, 64), nn.Tanh(), nn.Linear(64, latent))
        self.decoder = nn.Sequential(nn.Linear(latent, 64), nn.Tanh(), nn.Linear(64, length))
        self.criterion = nn.MSELoss()
        self.val_mse = MeanMetric()

    def forward(self, x):
        return self.decoder(self.encoder(x))

    def training_step(self, batch, batch_idx):
        noisy, clean = batch
        loss = self.criterion(self(noisy), clean)
        self.log("train_mse", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        noisy, clean = batch
        self.val_mse.update(self.criterion(self(noisy), clean))

    def on_validation_epoch_end(self):
        self.log("val_mse", self.val_mse.compute())
        self.val_mse.reset()

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=self.hparams.lr, momentum=0.9)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=12, gamma=0.3)
        return {"optimizer": optimizer, "lr_scheduler": scheduler}


trainer = L.Trainer(
    max_epochs=20,
    accelerator="cpu",
    gradient_clip_val=1.0 if healthy else 1e-3,
    gradient_clip_algorithm="norm",
    check_val_every_n_epoch=4,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(
    Denoiser(),
    DataLoader(TensorDataset(*curves(2048)), batch_size=64, shuffle=True),
    DataLoader(TensorDataset(*curves(512)), batch_size=512),
)
print({k: round(v.item(), 4) for k, v in trainer.callback_metrics.items()})
